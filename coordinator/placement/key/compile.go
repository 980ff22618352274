package key

import (
	"cmp"
	"slices"

	"berth/coordinator/model"
)

// Level is one of the sixteen levels of the resource hierarchy (FCO step 2). A key at a lower level, that is at a later
// one, wins over a key of its name above.
type Level int

// The levels, highest first.
const (
	LevelCluster Level = iota
	LevelBillingEntity
	LevelCustomerOffer
	LevelCustomer
	LevelImageOffer
	LevelImage
	LevelVDCOffer
	LevelVDC
	LevelServerOffer
	LevelServer
	LevelFirstDiskOffer
	LevelFirstDisk
	LevelFirstNICNetworkOffer
	LevelFirstNICNetwork
	LevelFirstNICOffer
	LevelFirstNIC
)

// Levels is how many there are.
const Levels = 16

var levelNames = [Levels]string{
	"cluster", "billing-entity", "customer-offer", "customer", "image-offer", "image", "vdc-offer", "vdc", "vm-offer", "vm",
	"first-disk-offer", "first-disk", "first-nic-network-offer", "first-nic-network", "first-nic-offer", "first-nic",
}

func (l Level) String() string { return levelNames[l] }

// Layer is what stands at one level above one VM.
type Layer struct {
	Level    Level
	Resource string      // kind/name, for people
	Keys     []model.Key // in any order
	Sticky   bool        // copies of sticky keys: they lose against keys set on the same level
}

// Compiled is the key that won for its name.
type Compiled struct {
	Weighted
	From     string       // kind/name of the resource that it was set on
	Sticky   bool         // a copy of a node's sticky key
	Overrode []Overridden // what it won over, the nearest level first
}

// Overridden is a key that a lower level won over.
type Overridden struct {
	Class  model.KeyClass
	Value  float64
	Weight float64
	Level  string
	From   string
}

// Compile finds for each name the key of the lowest level, with its value and weight together, apart for the system set and
// the customer set (FCO step 2), each sorted by name. Keys of weight 0 are no placement keys: they neither count nor mask.
// Billing-entity keys join the customer set; where both classes have a name at one level, the customer's wins.
func Compile(layers []Layer) (system, customer []Compiled) {
	type found struct {
		key   model.Key
		layer *Layer
	}
	var systemKeys, customerKeys []found
	for i := range layers {
		for _, one := range layers[i].Keys {
			switch {
			case one.Weight == 0:
			case one.Class == model.SystemKey:
				systemKeys = append(systemKeys, found{one, &layers[i]})
			default:
				customerKeys = append(customerKeys, found{one, &layers[i]})
			}
		}
	}
	compile := func(all []found) []Compiled {
		// The winner of a name first: the lowest level, what was set before what was copied, the customer's class first.
		slices.SortStableFunc(all, func(a, b found) int {
			return cmp.Or(
				cmp.Compare(a.key.Name, b.key.Name),
				cmp.Compare(b.layer.Level, a.layer.Level),
				cmp.Compare(rank(a.layer.Sticky), rank(b.layer.Sticky)),
				cmp.Compare(rank(a.key.Class == model.BillingEntityKey), rank(b.key.Class == model.BillingEntityKey)),
			)
		})
		var compiled []Compiled
		for _, one := range all {
			if last := len(compiled) - 1; last >= 0 && compiled[last].Name == one.key.Name {
				compiled[last].Overrode = append(compiled[last].Overrode, Overridden{
					Class: one.key.Class, Value: one.key.Value, Weight: one.key.Weight,
					Level: one.layer.Level.String(), From: one.layer.Resource,
				})
				continue
			}
			compiled = append(compiled, Compiled{
				Weighted: Weighted{
					Name: one.key.Name, Value: one.key.Value, Weight: one.key.Weight, Class: one.key.Class,
					Level: one.layer.Level.String(),
				},
				From: one.layer.Resource, Sticky: one.layer.Sticky,
			})
		}
		return compiled
	}
	return compile(systemKeys), compile(customerKeys)
}

func rank(last bool) int {
	if last {
		return 1
	}
	return 0
}

// WeightedOf are the compiled keys without their history, as a request carries them.
func WeightedOf(compiled []Compiled) []Weighted {
	weighted := make([]Weighted, 0, len(compiled))
	for i := range compiled {
		weighted = append(weighted, compiled[i].Weighted)
	}
	return weighted
}

// ResidentsOf are the compiled customer keys as the VM shows them to others: without their weights.
func ResidentsOf(customer []Weighted) []model.ResidentKey {
	residents := make([]model.ResidentKey, 0, len(customer))
	for i := range customer {
		residents = append(residents, model.ResidentKey{Class: customer[i].Class, Name: customer[i].Name, Value: customer[i].Value})
	}
	return residents
}
