package evidence

import (
	"path"

	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// inPool is a source as a volume, if it is a file in the folder of one of the node's pools: it can be named both ways.
func inPool(source model.DiskSource, facts *model.NodeFacts) model.DiskSource {
	if source.Path == "" {
		return source
	}
	for _, pool := range facts.Pools {
		if pool.Path != "" && path.Dir(source.Path) == path.Clean(pool.Path) {
			return model.DiskSource{Pool: pool.Name, Volume: path.Base(source.Path)}
		}
	}
	return model.DiskSource{Path: path.Clean(source.Path)}
}

// namesOf are all names that a source has on a node, as records may have them.
func namesOf(source model.DiskSource, facts *model.NodeFacts) []string {
	names := []string{operation.DiskName(source)}
	if as := inPool(source, facts); as.Pool != "" && source.Path != "" {
		names = append(names, operation.DiskName(as))
	}
	for _, pool := range facts.Pools {
		if pool.Path != "" && source.Path == "" && pool.Name == source.Pool {
			names = append(names, operation.DiskName(model.DiskSource{Path: path.Join(pool.Path, source.Volume)}))
		}
	}
	return names
}

// maySame tells whether two sources of one file name may be one disk on a node. While that does not tell where its pools are, a file may be
// any volume of its name.
func maySame(a, b model.DiskSource, facts *model.NodeFacts) bool {
	if !facts.PoolsKnown && (a.Path == "") != (b.Path == "") && len(facts.Pools) == 0 {
		return true
	}
	return inPool(a, facts) == inPool(b, facts)
}
