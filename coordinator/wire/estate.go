package wire

import (
	"maps"
	"strings"

	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/placement/key"
	"berth/coordinator/schema"
	berthv1 "berth/shared/gen/berth/v1"
)

// ResourceReport is all that one resource's message is made of.
type ResourceReport struct {
	Resource  model.Resource
	Name      func(id string) string // of a resource that it links to
	Effective map[string]string      // its settings with every default filled in
	From      map[string]string      // where settings that take effect come from, if that is not plain: kind/name
	UsedBy    []string               // kind/name of what links to it; nil when nobody asked

	EffectiveLists map[string][]string    // its lists with every default filled in
	NodeName       func(id string) string // of a node that has its volume
}

// Resource makes the message of one resource.
func Resource(report ResourceReport) *berthv1.Resource {
	r := report.Resource
	message := &berthv1.Resource{
		Id:                r.ID,
		Kind:              string(r.Kind),
		Name:              r.Name,
		Settings:          maps.Clone(r.Settings),
		EffectiveSettings: report.Effective,
		EffectiveFrom:     report.From,
		NodeKeys:          NodeKeys(r.NodeKeys),
		Keys:              Keys(r.Keys),
		CreatedAt:         timestamp(r.CreatedAt),
		Revision:          r.Revision,
		UsedBy:            report.UsedBy,
		Lists:             lists(r.Lists),
		EffectiveLists:    lists(report.EffectiveLists),
		BuiltIn:           strings.HasPrefix(r.ID, model.BuiltIn),
	}
	if r.Volume != nil {
		message.Volume = report.volume(r.Volume)
	}
	for i := range r.Copies {
		message.Copies = append(message.Copies, report.volume(&r.Copies[i]))
	}
	if len(r.Links) > 0 {
		message.Links = make(map[string]string, len(r.Links))
		for name, id := range r.Links {
			message.Links[name] = report.Name(id)
		}
	}
	return message
}

// volume makes the message of one place of a resource's content.
func (report ResourceReport) volume(made *model.Volume) *berthv1.ResourceVolume {
	return &berthv1.ResourceVolume{
		Pool: report.Name(made.Pool), Nodes: sortedNames(report.NodeName, made.Nodes), Name: made.Name, Format: made.Format,
		CapacityBytes: int64(made.Capacity), Sha256: made.Checksum, Doomed: made.Doomed,
	}
}

func lists(named map[string][]string) map[string]*berthv1.ResourceList {
	messages := make(map[string]*berthv1.ResourceList, len(named))
	for name, items := range named {
		messages[name] = &berthv1.ResourceList{Items: items}
	}
	return messages
}

// Keys makes the messages of the keys on one thing, in their order.
func Keys(keys []model.Key) []*berthv1.Key {
	messages := make([]*berthv1.Key, 0, len(keys))
	for _, k := range keys {
		messages = append(messages, &berthv1.Key{Class: string(k.Class), Name: k.Name, Value: k.Value, Weight: k.Weight})
	}
	return messages
}

// KeyFrom reads the key that a request carries, unchecked. One without a class is of the class that is given.
func KeyFrom(message *berthv1.Key, otherwise model.KeyClass) model.Key {
	k := model.Key{
		Class: model.KeyClass(message.GetClass()), Name: message.GetName(), Value: message.GetValue(), Weight: message.GetWeight(),
	}
	if k.Class == "" {
		k.Class = otherwise
	}
	return k
}

// NodeKeys makes the messages of what a cluster declares for its nodes.
func NodeKeys(keys []model.NodeKey) []*berthv1.NodeKey {
	messages := make([]*berthv1.NodeKey, 0, len(keys))
	for _, k := range keys {
		messages = append(messages, &berthv1.NodeKey{Name: k.Name, Default: k.Default, Sticky: k.Sticky, Weight: k.Weight})
	}
	return messages
}

// NodeKeyFrom reads the declaration that a request carries, unchecked.
func NodeKeyFrom(message *berthv1.NodeKey) model.NodeKey {
	return model.NodeKey{
		Name: message.GetName(), Default: message.GetDefault(), Sticky: message.GetSticky(), Weight: message.GetWeight(),
	}
}

// CompiledKeys makes the messages of one set of compiled keys, with what each of them won over.
func CompiledKeys(compiled []key.Compiled) []*berthv1.CompiledKey {
	messages := make([]*berthv1.CompiledKey, 0, len(compiled))
	for i := range compiled {
		message := weighted(compiled[i].Weighted)
		message.From, message.Sticky = compiled[i].From, compiled[i].Sticky
		for _, o := range compiled[i].Overrode {
			message.Overrode = append(message.Overrode, &berthv1.OverriddenKey{
				Class: string(o.Class), Value: o.Value, Weight: o.Weight, Level: o.Level, From: o.From,
			})
		}
		messages = append(messages, message)
	}
	return messages
}

func weighted(k key.Weighted) *berthv1.CompiledKey {
	return &berthv1.CompiledKey{Name: k.Name, Value: k.Value, Weight: k.Weight, Class: string(k.Class), Level: k.Level}
}

// weightedKeys makes the messages of the keys that a decision's request carried.
func weightedKeys(keys []key.Weighted) []*berthv1.CompiledKey {
	messages := make([]*berthv1.CompiledKey, 0, len(keys))
	for i := range keys {
		messages = append(messages, weighted(keys[i]))
	}
	return messages
}

// Problem makes the message of one thing that is wrong.
func Problem(p schema.Problem) *berthv1.Problem {
	return &berthv1.Problem{File: p.File, Line: int32(p.Line), Subject: p.Subject, Message: p.Message, NextStep: p.Next}
}

// Changes makes the messages of what applying a document does, in its order.
func Changes(changes []estate.Change) []*berthv1.EstateChange {
	messages := make([]*berthv1.EstateChange, 0, len(changes))
	for _, change := range changes {
		messages = append(messages, &berthv1.EstateChange{
			Action: string(change.Action), Kind: string(change.Kind), Name: change.Name, Fields: Fields(change.Fields),
		})
	}
	return messages
}

// Fields makes the messages of what becomes of the fields of one thing.
func Fields(fields []estate.FieldChange) []*berthv1.FieldChange {
	messages := make([]*berthv1.FieldChange, 0, len(fields))
	for _, f := range fields {
		messages = append(messages, &berthv1.FieldChange{Field: f.Field, From: f.From, To: f.To, Note: f.Note})
	}
	return messages
}
