package clitest

import (
	"slices"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/rpc"
)

// estateFake answers about what people declare, and keys.
type estateFake struct {
	listResources    func(*berthv1.ListResourcesRequest) (*berthv1.ListResourcesResponse, error)
	getResource      func(*berthv1.GetResourceRequest) (*berthv1.GetResourceResponse, error)
	addResource      func(*berthv1.AddResourceRequest) (*berthv1.AddResourceResponse, error)
	OnChangeResource func(*berthv1.ChangeResourceRequest) (*berthv1.ChangeResourceResponse, error)
	deleteResource   func(*berthv1.DeleteResourceRequest) (*berthv1.DeleteResourceResponse, error)
	setKey           func(*berthv1.SetKeyRequest) (*berthv1.SetKeyResponse, error)
	unsetKey         func(*berthv1.UnsetKeyRequest) (*berthv1.UnsetKeyResponse, error)
	listKeys         func(*berthv1.ListKeysRequest) (*berthv1.ListKeysResponse, error)
	compiledKeys     func(*berthv1.CompiledKeysRequest) (*berthv1.CompiledKeysResponse, error)
	declareNodeKey   func(*berthv1.DeclareNodeKeyRequest) (*berthv1.DeclareNodeKeyResponse, error)
	dropNodeKey      func(*berthv1.DropNodeKeyRequest) (*berthv1.DropNodeKeyResponse, error)
	OnApplyEstate    func(*berthv1.ApplyEstateRequest) (*berthv1.ApplyEstateResponse, error)
	OnExportEstate   func(*berthv1.ExportEstateRequest) (*berthv1.ExportEstateResponse, error)
}

func (f *estateFake) listen(l listener) {
	unary(l, berthv1connect.BerthServiceListResourcesProcedure, &f.listResources)
	unary(l, berthv1connect.BerthServiceGetResourceProcedure, &f.getResource)
	unary(l, berthv1connect.BerthServiceAddResourceProcedure, &f.addResource)
	unary(l, berthv1connect.BerthServiceChangeResourceProcedure, &f.OnChangeResource)
	unary(l, berthv1connect.BerthServiceDeleteResourceProcedure, &f.deleteResource)
	unary(l, berthv1connect.BerthServiceSetKeyProcedure, &f.setKey)
	unary(l, berthv1connect.BerthServiceUnsetKeyProcedure, &f.unsetKey)
	unary(l, berthv1connect.BerthServiceListKeysProcedure, &f.listKeys)
	unary(l, berthv1connect.BerthServiceCompiledKeysProcedure, &f.compiledKeys)
	unary(l, berthv1connect.BerthServiceDeclareNodeKeyProcedure, &f.declareNodeKey)
	unary(l, berthv1connect.BerthServiceDropNodeKeyProcedure, &f.dropNodeKey)
	unary(l, berthv1connect.BerthServiceApplyEstateProcedure, &f.OnApplyEstate)
	unary(l, berthv1connect.BerthServiceExportEstateProcedure, &f.OnExportEstate)
}

func cannedEstateAnswers() estateFake {
	return estateFake{
		listResources: func(r *berthv1.ListResourcesRequest) (*berthv1.ListResourcesResponse, error) {
			answer := &berthv1.ListResourcesResponse{SchemaVersion: "1"}
			for _, resource := range cannedResources() {
				if r.GetKind() == "" || r.GetKind() == resource.GetKind() {
					answer.Resources = append(answer.Resources, resource)
				}
			}
			return answer, nil
		},
		getResource: func(r *berthv1.GetResourceRequest) (*berthv1.GetResourceResponse, error) {
			resource, err := cannedResource(r.GetKind(), r.GetName())
			return &berthv1.GetResourceResponse{SchemaVersion: "1", Resource: resource}, err
		},
		addResource: func(r *berthv1.AddResourceRequest) (*berthv1.AddResourceResponse, error) {
			lists := map[string]*berthv1.ResourceList{}
			for name, items := range r.GetLists() {
				lists[name] = &berthv1.ResourceList{Items: items.GetNames()}
			}
			return &berthv1.AddResourceResponse{SchemaVersion: "1", Resource: &berthv1.Resource{
				Kind: r.GetKind(), Name: r.GetName(), Links: r.GetLinks(), Settings: r.GetSettings(), Lists: lists, CreatedAt: Ago(0),
			}}, nil
		},
		OnChangeResource: func(r *berthv1.ChangeResourceRequest) (*berthv1.ChangeResourceResponse, error) {
			resource, err := cannedResource(r.GetKind(), r.GetName())
			return &berthv1.ChangeResourceResponse{SchemaVersion: "1", Resource: resource}, err
		},
		deleteResource: func(r *berthv1.DeleteResourceRequest) (*berthv1.DeleteResourceResponse, error) {
			resource, err := cannedResource(r.GetKind(), r.GetName())
			if err == nil && len(resource.GetUsedBy()) > 0 {
				err = rpc.Errorf(connect.CodeFailedPrecondition, &berthv1.ErrorDetail{
					Code: rpc.Conflict, Subject: "customer/acme", NextStep: "delete them or let them link elsewhere first",
				}, "%s is in use by %s", term.ResourceRef(resource), resource.GetUsedBy()[0])
			}
			return &berthv1.DeleteResourceResponse{SchemaVersion: "1"}, err
		},
		setKey: func(r *berthv1.SetKeyRequest) (*berthv1.SetKeyResponse, error) {
			return &berthv1.SetKeyResponse{SchemaVersion: "1", Keys: []*berthv1.Key{r.GetKey()}}, nil
		},
		unsetKey: func(*berthv1.UnsetKeyRequest) (*berthv1.UnsetKeyResponse, error) {
			return &berthv1.UnsetKeyResponse{SchemaVersion: "1"}, nil
		},
		listKeys:     cannedKeys,
		compiledKeys: cannedCompiled,
		declareNodeKey: func(r *berthv1.DeclareNodeKeyRequest) (*berthv1.DeclareNodeKeyResponse, error) {
			resource, err := cannedResource("cluster", r.GetCluster())
			return &berthv1.DeclareNodeKeyResponse{SchemaVersion: "1", Cluster: resource}, err
		},
		dropNodeKey: func(r *berthv1.DropNodeKeyRequest) (*berthv1.DropNodeKeyResponse, error) {
			resource, err := cannedResource("cluster", r.GetCluster())
			return &berthv1.DropNodeKeyResponse{SchemaVersion: "1", Cluster: resource}, err
		},
		OnApplyEstate: func(r *berthv1.ApplyEstateRequest) (*berthv1.ApplyEstateResponse, error) {
			return &berthv1.ApplyEstateResponse{SchemaVersion: "1", DryRun: r.GetDryRun(), Changes: CannedChanges()}, nil
		},
		OnExportEstate: func(*berthv1.ExportEstateRequest) (*berthv1.ExportEstateResponse, error) {
			return &berthv1.ExportEstateResponse{SchemaVersion: "1", Document: []byte("format: berth/estate/v1\ncustomers:\n  - name: acme\n")}, nil
		},
	}
}

// cannedResources are some of each sort: with and without links, settings and keys.
func cannedResources() []*berthv1.Resource {
	special := []*berthv1.Key{
		{Class: "system", Name: "#CPU", Weight: 30}, {Class: "system", Name: "#LOAD", Weight: 30}, {Class: "system", Name: "#RAM", Weight: 40},
	}
	return []*berthv1.Resource{
		{Id: "default", Kind: "cluster", Name: "default", Keys: special},
		{
			Id: "3nqk7d2m0r1aa", Kind: "cluster", Name: "prod", CreatedAt: Ago(time.Hour), Revision: 17,
			Settings:          map[string]string{"ram_ratio": "1.5", "overhead": "2147483648", "storage": "local"},
			EffectiveSettings: map[string]string{"ram_ratio": "1.5", "overhead": "2147483648", "storage": "local", "cpu_ratio": "8"},
			NodeKeys:          []*berthv1.NodeKey{{Name: "DS", Sticky: true, Weight: 30}, {Name: "Premium"}, {Name: "_ssd", Default: 1}},
			Keys:              append(special, &berthv1.Key{Class: "system", Name: "rack", Value: 7}),
			UsedBy:            []string{"node/node1", "vdc/acme-prod"},
		},
		{Id: "3nqk7d2m0r2aa", Kind: "billing-entity", Name: "reseller", CreatedAt: Ago(time.Hour), UsedBy: []string{"customer/acme"}},
		{
			Id: "3nqk7d2m0r3aa", Kind: "customer", Name: "acme", CreatedAt: Ago(time.Hour), Links: map[string]string{"billing_entity": "reseller"},
			Keys: []*berthv1.Key{{Class: "billing-entity", Name: "_ssd", Value: 1, Weight: 20}},
		},
		{
			Id: "3nqk7d2m0r4aa", Kind: "vdc", Name: "acme-prod", CreatedAt: Ago(time.Hour), Links: map[string]string{
				"customer": "acme", "cluster": "prod",
			},
			UsedBy: []string{"vm/web1"},
		},
		{Id: "3nqk7d2m0r5aa", Kind: "vdc", Name: "acme-test", CreatedAt: Ago(time.Hour), Links: map[string]string{"customer": "acme"}},
		{
			Id: "3nqk7d2m0r6aa", Kind: "disk", Name: "web-1-root", CreatedAt: Ago(time.Hour),
			Settings: map[string]string{"path": "/srv/web1.qcow2", "format": "qcow2"},
		},
		{
			Id: "builtin:vm-evenly-distributed", Kind: "policy", Name: "vm-evenly-distributed", BuiltIn: true,
			EffectiveSettings: map[string]string{
				"gate": "off", "planner": "first-fit", "selector": "rank", "balancer": "even-vm-count", "drain_ignores_vm_rules": "true",
			},
			EffectiveLists: map[string]*berthv1.ResourceList{
				"weighers":    {Items: []string{"customer-keys=1", "rack-heat=0.5"}},
				"constraints": {Items: policyConstraints()},
			},
			UsedBy: []string{"cluster/prod"},
		},
		{
			Id: "3nqk7d2m0r7aa", Kind: "policy", Name: "mine", CreatedAt: Ago(time.Hour), Revision: 18,
			Settings: map[string]string{"balancer": "even-vm-count"},
			Lists: map[string]*berthv1.ResourceList{
				"weighers": {Items: []string{"customer-keys=1", "system-keys=2"}}, "parameters": {Items: []string{
					"HighVMCount=20", "MigrationThreshold=3",
				}},
				"constraints": {Items: []string{"fresh", "memory-physical", "memory-promised", "node-affinity", "pin", "running"}},
			},
		},
		{
			Id: "3nqk7d2m0rdaa", Kind: "disk", Name: "db-1-root", Links: map[string]string{"image": "debian"},
			CreatedAt: Ago(time.Hour), Revision: 20,
			Settings: map[string]string{
				"keep": "true", "size": "21474836480",
			}, EffectiveSettings: map[string]string{"keep": "true", "bus": "virtio"},
			Volume: &berthv1.ResourceVolume{
				Pool: "fast", Nodes: []string{"node1"}, Name: "berth-3nqk7d2m0rdaa.qcow2", Format: "qcow2", CapacityBytes: 20 << 30,
			},
			UsedBy: []string{"vm/db-1"},
		},
		{
			Id: "3nqk7d2m0riaa", Kind: "image", Name: "debian", CreatedAt: Ago(time.Hour), Revision: 20,
			Volume: &berthv1.ResourceVolume{
				Pool: "fast", Nodes: []string{"node1", "node2"}, Name: "berth-3nqk7d2m0riaa.qcow2", Format: "qcow2", CapacityBytes: 2 << 30,
				Sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", Doomed: true,
			},
			Copies: []*berthv1.ResourceVolume{{
				Pool: "nfs", Name: "berth-3nqk7d2m0riaa-3nqk7d2m0rpaa.qcow2", Format: "qcow2", CapacityBytes: 2 << 30,
				Sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", Doomed: true,
			}},
		},
		{
			Id: "3nqk7d2m0rzaa", Kind: "zone", Name: "fra", CreatedAt: Ago(time.Hour), Revision: 20,
			Settings: map[string]string{"planner": "user-dispersing"},
			UsedBy:   []string{"pod/fra-1"},
		},
		{Id: "3nqk7d2m0r8aa", Kind: "policy", Name: "drawn", CreatedAt: Ago(time.Hour), Revision: 19, Settings: map[string]string{"gate": "off"}},
	}
}

// policyConstraints are the constraints that a policy has by default.
func policyConstraints() []string {
	form, _ := schema.FormOf(model.KindPolicy)
	at := slices.IndexFunc(form.Lists, func(l schema.List) bool { return l.Name == "constraints" })
	return form.Lists[at].Default
}

func cannedResource(kind, name string) (*berthv1.Resource, error) {
	for _, r := range cannedResources() {
		if r.GetKind() == kind && r.GetName() == name {
			return r, nil
		}
	}
	return nil, rpc.Errorf(connect.CodeNotFound, &berthv1.ErrorDetail{
		Code: rpc.NotFound, Subject: kind + "/" + name, NextStep: "see 'berth " + kind + " list'",
	}, "there is no %s %q", kind, name)
}

// CannedChanges are what applying a document changes.
func CannedChanges() []*berthv1.EstateChange {
	return []*berthv1.EstateChange{
		{
			Action: "create", Kind: "customer", Name: "acme",
			Fields: []*berthv1.FieldChange{{Field: "billing_entity", To: "reseller"}, {Field: "key billing-entity _ssd", To: "1, weight 20"}},
		},
		{Action: "change", Kind: "vm", Name: "web1", Fields: []*berthv1.FieldChange{
			{Field: "memory", From: "512 MiB", To: "1 GiB", Note: "takes effect at the next start"}, {Field: "offer", From: "small"},
		}},
		{Action: "delete", Kind: "nic", Name: "old-nic"},
	}
}

func cannedKeys(r *berthv1.ListKeysRequest) (*berthv1.ListKeysResponse, error) {
	answer := &berthv1.ListKeysResponse{SchemaVersion: "1"}
	switch {
	case r.GetKind() == "vm" && r.GetName() == cannedVMs()[1].GetName():
		answer.Keys, answer.Sticky = cannedVMs()[1].GetKeys(), cannedVMs()[1].GetSticky()
	case r.GetKind() == "node" && r.GetName() == cannedNodes()[0].GetName():
		answer.NodeKeys = cannedResources()[1].GetNodeKeys()
		answer.Values, answer.Own = cannedNodes()[0].GetKeys(), cannedNodes()[0].GetOwnKeys()
	default:
		resource, err := cannedResource(r.GetKind(), r.GetName())
		if err != nil {
			return nil, err
		}
		answer.Keys, answer.NodeKeys = resource.GetKeys(), resource.GetNodeKeys()
	}
	return answer, nil
}

func cannedCompiled(*berthv1.CompiledKeysRequest) (*berthv1.CompiledKeysResponse, error) {
	return &berthv1.CompiledKeysResponse{
		SchemaVersion: "1", Vm: "web1", Cluster: "prod", Customer: "acme", BillingEntity: "reseller",
		System: []*berthv1.CompiledKey{
			{Name: "#RAM", Value: 0, Weight: 40, Class: "system", Level: "cluster", From: "cluster/prod"},
			{Name: "DS", Value: 3, Weight: 30, Class: "system", Level: "vm", From: "vm/web1", Sticky: true},
			{Name: "TIER", Value: 3, Weight: 5.25, Class: "system", Level: "vm-offer", From: "offer/small", Overrode: []*berthv1.OverriddenKey{
				{Class: "system", Value: 2, Weight: 5, Level: "vdc", From: "vdc/acme-prod"}, {
					Class: "system", Value: 1, Weight: 1, Level: "cluster", From: "cluster/prod",
				},
			}},
		},
		CustomerKeys: []*berthv1.CompiledKey{{Name: "Group1", Value: 1, Weight: -100, Class: "customer", Level: "vm", From: "vm/web1"}},
	}, nil
}
