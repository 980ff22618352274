package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"berth/coordinator/model"
	"berth/coordinator/placement/key"
)

// strictly decodes JSON and refuses fields that nothing would look at.
func strictly(raw []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// optional is a value that may be left out, or null.
type optional[T any] struct {
	given, null bool
	value       T
}

func (o *optional[T]) UnmarshalJSON(raw []byte) error {
	o.given = true
	if string(raw) == "null" {
		o.null = true
		return nil
	}
	return strictly(raw, &o.value)
}

// or is the value, or what stands for one that is left out.
func (o *optional[T]) or(otherwise T) T {
	if !o.given || o.null {
		return otherwise
	}
	return o.value
}

// count is a whole number, however it is written.
type count int

func (c *count) UnmarshalJSON(raw []byte) error {
	var f float64
	if err := json.Unmarshal(raw, &f); err != nil {
		return err
	}
	if f != math.Trunc(f) {
		return fmt.Errorf("%v is no whole number", f)
	}
	*c = count(f)
	return nil
}

// entry is one key in any of the forms that cases have: an object, [name, value], [name, value, weight],
// [name, value, owner] or [vm, name, value].
type entry struct {
	VM     string
	Level  string
	Class  string
	Name   string
	Value  float64
	Weight float64
	Owner  string
}

func (e *entry) UnmarshalJSON(raw []byte) error {
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) {
		var object struct {
			VM, Level, Name, Class, Owner string
			ClassToo                      string `json:"class_"`
			Value, Weight                 float64
		}
		if err := strictly(raw, &object); err != nil {
			return err
		}
		*e = entry{
			VM: object.VM, Level: object.Level, Class: object.Class + object.ClassToo, Name: object.Name,
			Value: object.Value, Weight: object.Weight, Owner: object.Owner,
		}
		return nil
	}
	var parts []any
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	var before, after []string
	var numbers []float64
	for _, part := range parts {
		switch part := part.(type) {
		case float64:
			numbers = append(numbers, part)
		case string:
			if len(numbers) == 0 {
				before = append(before, part)
			} else {
				after = append(after, part)
			}
		default:
			return fmt.Errorf("%s is no key", raw)
		}
	}
	if len(before) < 1 || len(before) > 2 || len(numbers) < 1 || len(numbers) > 2 || len(after) > 1 {
		return fmt.Errorf("%s is no key", raw)
	}
	e.Name, e.Value = before[len(before)-1], numbers[0]
	if len(before) == 2 {
		e.VM = before[0]
	}
	if len(numbers) == 2 {
		e.Weight = numbers[1]
	}
	if len(after) == 1 {
		e.Owner = after[0]
	}
	return nil
}

// String is the entry as a node has it: without weight.
func (e entry) String() string { return fmt.Sprintf("%s=%v", e.Name, e.Value) }

// key is the entry as it is set on a resource.
func (e entry) key(class model.KeyClass) model.Key {
	if e.Class != "" {
		class = classOf(e.Class)
	}
	return model.Key{Class: class, Name: e.Name, Value: e.Value, Weight: e.Weight}
}

// resident is the entry as a VM shows it to others.
func (e entry) resident() model.ResidentKey {
	k := e.key(model.CustomerKey)
	return model.ResidentKey{Class: k.Class, Name: k.Name, Value: k.Value}
}

func classOf(name string) model.KeyClass {
	return model.KeyClass(strings.ReplaceAll(name, "_", "-"))
}

// levels are the names that cases have for the sixteen levels, highest first.
var levels = [key.Levels]string{
	"cluster", "billing_entity", "customer_product_offer", "customer", "image_product_offer", "image", "vdc_product_offer",
	"vdc", "server_product_offer", "server", "first_disk_product_offer", "first_disk", "first_nic_network_product_offer",
	"first_nic_network", "first_nic_product_offer", "first_nic",
}

// selection is what a case expects of the choice among nodes. What it leaves out is not compared.
type selection struct {
	Round       optional[count]    `json:"round"`
	Threshold   optional[float64]  `json:"threshold"`
	Band        optional[[]string] `json:"band"`
	Winners     optional[[]string] `json:"winners"`
	Placed      optional[string]   `json:"placed"`
	FailedPhase optional[string]   `json:"failed_phase"`
	Tolerance   optional[float64]  `json:"tolerance"` // of the figures
}
