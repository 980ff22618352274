package api

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/volumes"
	"berth/coordinator/model"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/qcow2"
	"berth/shared/rpc"
	"berth/shared/units"
)

// qcow2File is a good image of a disk of 1 GiB, as far as its header tells, of a length in bytes.
func qcow2File(length int, change func(header []byte)) []byte {
	file := make([]byte, length)
	copy(file, "QFI\xfb")
	for at, v := range map[int]uint32{4: 3, 20: 16, 36: 2, 56: 1, 96: 4, 100: 104} {
		binary.BigEndian.PutUint32(file[at:], v)
	}
	for at, v := range map[int]uint64{24: 1 << 30, 40: 3 << 16, 48: 1 << 16} {
		binary.BigEndian.PutUint64(file[at:], v)
	}
	if change != nil {
		change(file)
	}
	return file
}

func sumOf(file []byte) string {
	sum := sha256.Sum256(file)
	return hex.EncodeToString(sum[:])
}

// send imports a file in messages of a size, and tells how many bytes were taken from it.
func send(
	t *testing.T, client berthv1connect.BerthServiceClient, start *berthv1.ImportImageStart, file []byte, size int,
) (answer *berthv1.ImportImageResponse, sent int, err error) {
	t.Helper()
	stream := client.ImportImage(t.Context())
	failed := stream.Send(&berthv1.ImportImageRequest{Start: start})
	for failed == nil && sent < len(file) {
		piece := file[sent:min(sent+size, len(file))]
		failed = stream.Send(&berthv1.ImportImageRequest{Data: piece})
		sent += len(piece)
	}
	response, err := stream.CloseAndReceive()
	if err != nil {
		return nil, sent, err
	}
	return response.Msg, sent, nil
}

// storagePool declares a pool, and gives the control of every member that imports into the state.
func (c *cloud) storagePool(t *testing.T) {
	t.Helper()
	leading := c.leader()
	leading.declare(model.Resource{ID: "p1", Kind: model.KindPool, Name: "fast", Settings: map[string]string{model.SettingScope: "shared"}})
	for _, m := range c.members {
		m.control.importImage = func(wanted volumes.ImportImage) (model.Resource, error) {
			made := model.Resource{ID: "i-" + wanted.Name, Kind: model.KindImage, Name: wanted.Name, Volume: &model.Volume{
				Pool: wanted.Pool, Name: "berth-i.qcow2", Format: wanted.Format, Capacity: wanted.Capacity, Checksum: wanted.Checksum,
			}}
			for range 2 { // as two nodes of a local pool
				content, err := wanted.Open()
				if err != nil {
					return made, err
				}
				data, err := io.ReadAll(content)
				if err != nil || sumOf(data) != wanted.Checksum || units.Bytes(len(data)) != wanted.Size {
					t.Errorf("control reads %d bytes of %d, sum %s of %s, %v", len(data), wanted.Size, sumOf(data), wanted.Checksum, err)
				}
				content.Close()
			}
			m.declare(made)
			return made, nil
		}
	}
}

// declare puts a resource into the state.
func (m *coordinator) declare(r model.Resource) {
	m.cloud.t.Helper()
	m.propose(state.Command{
		Kind: "test", Expect: []state.Expectation{{Table: state.Resources, ID: r.ID}}, Resources: []model.Resource{r},
	})
}

// A follower passes the file on to the leader, message by message.
func TestAnImageIsImportedThroughAFollower(t *testing.T) {
	c := newCloud(t, 3)
	c.storagePool(t)
	file := qcow2File(3<<20+17, nil)
	start := &berthv1.ImportImageStart{
		Name: "debian", Pool: "fast", Format: "qcow2", SizeBytes: int64(len(file)), Sha256: sumOf(file), RequestId: "r1",
	}
	follower := c.follower()
	answer, _, err := send(t, follower.operator(), start, file, 256<<10)
	if err != nil {
		t.Fatal(err)
	}
	if answer.GetImage().GetName() != "debian" || answer.GetImage().GetKind() != "image" {
		t.Errorf("answered %v", answer)
	}
	leading := c.leader()
	made, _ := leading.store.Snapshot().ResourceByName(model.KindImage, "debian")
	if made.Volume == nil || made.Volume.Capacity != units.GiB || made.Volume.Checksum != sumOf(file) || made.Volume.Pool != "p1" {
		t.Errorf("control was asked for %+v", made.Volume)
	}
	leading.control.importImage = func(volumes.ImportImage) (model.Resource, error) {
		t.Error("the same file was imported twice")
		return model.Resource{}, nil
	}
	if _, sent, err := send(t, follower.operator(), start, file, 256<<10); err != nil {
		t.Errorf("the same once more: %v after %d bytes", err, sent)
	}
	// Into another pool the same file goes as well.
	leading.declare(model.Resource{ID: "p2", Kind: model.KindPool, Name: "slow", Settings: map[string]string{model.SettingScope: "shared"}})
	came := ""
	leading.control.importImage = func(wanted volumes.ImportImage) (model.Resource, error) {
		came = wanted.Pool + " " + wanted.Checksum
		return made, nil
	}
	further := &berthv1.ImportImageStart{
		Name: start.Name, Pool: "slow", Format: start.Format, SizeBytes: start.SizeBytes, Sha256: start.Sha256,
	}
	if _, _, err := send(t, follower.operator(), further, file, 256<<10); err != nil || came != "p2 "+sumOf(file) {
		t.Errorf("into another pool: %v, control was asked for %q", err, came)
	}
	_, sent, err := send(t, follower.operator(), &berthv1.ImportImageStart{
		Name: "other", Pool: "fast", Format: "qcow2", SizeBytes: 64 << 20,
	}, make([]byte, 64<<20), 64<<10)
	if rpc.Detail(err).GetCode() != rpc.Invalid || sent == 64<<20 {
		t.Errorf("no image at all: %v after %d bytes", err, sent)
	}
	for _, m := range c.members {
		if left, _ := os.ReadDir(m.imports); len(left) > 0 {
			t.Errorf("member %s keeps %d files", m.id, len(left))
		}
	}
	if holdsRoom(t, follower.operator()) {
		t.Error("room is still held for imports")
	}
}

// What cannot become an image is refused, as soon as that is known; nobody is asked for anything, and nothing is left.
// A local pool is asked anew as long as one of its nodes lacks the image: it may have come after the first import.
func TestAnImageComesToNodesThatJoinLater(t *testing.T) {
	c := newCloud(t, 1)
	leading := c.leader()
	for _, node := range []string{"n1", "n2"} {
		leading.addNode(node, "h"+node)
		session, err := leading.inventory.OpenSession(node, &berthv1.Hello{NodeId: node, Incarnation: "boot"}, 1)
		c.check(err)
		session.Report(&berthv1.SessionRequest{Sequence: 2, Message: &berthv1.SessionRequest_Inventory{Inventory: &berthv1.InventoryReport{
			Node: &berthv1.NodeInventory{MemoryBytes: 1 << 30, Cpus: 4, StoragePools: []*berthv1.StoragePool{
				{Name: "fast", Active: true, CapacityBytes: 100 << 30, AvailableBytes: 60 << 30},
			}},
		}}})
	}
	leading.declare(model.Resource{
		ID: "p1", Kind: model.KindPool, Name: "fast", Links: map[string]string{"cluster": model.DefaultCluster},
		Settings: map[string]string{model.SettingScope: "local"},
	})
	file := qcow2File(1<<20, nil)
	for name, nodes := range map[string][]string{"partly": {"n1"}, "wholly": {"n1", "n2"}} {
		leading.declare(model.Resource{ID: "i-" + name, Kind: model.KindImage, Name: name, Volume: &model.Volume{
			Pool: "p1", Nodes: nodes, Name: "v-" + name, Format: "qcow2", Capacity: units.GiB, Checksum: sumOf(file),
		}})
	}
	var came []string
	leading.control.importImage = func(wanted volumes.ImportImage) (model.Resource, error) {
		came = append(came, wanted.Name)
		return model.Resource{}, nil
	}
	for _, name := range []string{"partly", "wholly"} {
		start := &berthv1.ImportImageStart{Name: name, Pool: "fast", Format: "qcow2", SizeBytes: int64(len(file)), Sha256: sumOf(file)}
		_, _, err := send(t, leading.operator(), start, file, 256<<10)
		c.check(err)
	}
	if !slices.Equal(came, []string{"partly"}) {
		t.Errorf("control was asked for %q, want the image that n2 lacks", came)
	}
}

func TestImagesThatAreRefused(t *testing.T) {
	c := newCloud(t, 1)
	c.storagePool(t)
	leading := c.leader()
	leading.control.importImage = func(wanted volumes.ImportImage) (model.Resource, error) {
		t.Errorf("control was asked for %+v", wanted)
		return model.Resource{}, nil
	}
	leading.declare(model.Resource{
		ID: "i1", Kind: model.KindImage, Name: "there", Volume: &model.Volume{Pool: "p1", Format: "qcow2", Checksum: sumOf(nil)},
	})
	leading.declare(model.Resource{ID: "i2", Kind: model.KindImage, Name: "file", Settings: map[string]string{"path": "/srv/a.raw"}})
	client := leading.operator()
	const long = 64 << 20 // more than what is on the way when the refusal comes
	good := qcow2File(256<<10, nil)
	for name, tc := range map[string]struct {
		change func(*berthv1.ImportImageStart)
		file   []byte
		code   string
		say    string
	}{
		"no name":         {func(s *berthv1.ImportImageStart) { s.Name, s.Pool = "", "" }, good, rpc.Invalid, "no name"},
		"a bad name":      {func(s *berthv1.ImportImageStart) { s.Name = "a/b" }, good, rpc.Invalid, "a/b"},
		"no size":         {func(s *berthv1.ImportImageStart) { s.SizeBytes = 0 }, good, rpc.Invalid, "0 bytes"},
		"a negative size": {func(s *berthv1.ImportImageStart) { s.SizeBytes = -1 }, good, rpc.Invalid, "-1 bytes"},
		"a giant":         {func(s *berthv1.ImportImageStart) { s.SizeBytes = 1<<50 + 1 }, good, rpc.Invalid, "no image"},
		"too much":        {func(s *berthv1.ImportImageStart) { s.SizeBytes = 1 << 50 }, good, rpc.Unavailable, "does not fit"},
		"a wrong sum": {
			func(s *berthv1.ImportImageStart) { s.Sha256 = sumOf([]byte("x")) }, good, rpc.Invalid, "has the SHA-256 " + sumOf(good),
		},
		"no sum":         {func(s *berthv1.ImportImageStart) { s.Sha256 = "abc" }, good, rpc.Invalid, `"abc" is no SHA-256`},
		"no format":      {func(s *berthv1.ImportImageStart) { s.Format = "" }, good, rpc.Invalid, `format "" is not known`},
		"another format": {func(s *berthv1.ImportImageStart) { s.Format = "vmdk" }, good, rpc.Invalid, `format "vmdk" is not known`},
		"raw, not qcow2": {func(s *berthv1.ImportImageStart) { s.Format = "raw" }, good, rpc.Invalid, "begins like a qcow2 image"},
		"qcow2, not raw": {nil, make([]byte, long), rpc.Invalid, "does not begin like"},
		"no pool":        {func(s *berthv1.ImportImageStart) { s.Pool = "slow" }, good, rpc.NotFound, `no pool "slow"`},
		"no offer":       {func(s *berthv1.ImportImageStart) { s.Offer = "gold" }, good, rpc.NotFound, `no offer "gold"`},
		"there already":  {func(s *berthv1.ImportImageStart) { s.Name = "there" }, good, rpc.Exists, `image "there" already`},
		"another file": {
			func(s *berthv1.ImportImageStart) { s.Name, s.Sha256 = "there", sumOf(good) }, good, rpc.Exists,
			`image "there" is another file: qcow2, SHA-256 ` + sumOf(nil),
		},
		"a file's name":    {func(s *berthv1.ImportImageStart) { s.Name = "file" }, good, rpc.Exists, `image "file" already`},
		"a backing file":   {nil, qcow2File(long, func(h []byte) { h[15] = 200 }), rpc.Invalid, "backing file"},
		"a data file":      {nil, qcow2File(long, func(h []byte) { h[79] = 4 }), rpc.Invalid, "external data file"},
		"encrypted":        {nil, qcow2File(long, func(h []byte) { h[35] = 2 }), rpc.Invalid, "encrypted"},
		"corrupt":          {nil, qcow2File(long, func(h []byte) { h[79] = 2 }), rpc.Invalid, "corrupt"},
		"internal history": {nil, qcow2File(long, func(h []byte) { h[63] = 1 }), rpc.Invalid, "internal snapshots"},
		"cut short":        {nil, qcow2File(150<<10, nil), rpc.Invalid, "some of the file is missing"},
		"less than said":   {func(s *berthv1.ImportImageStart) { s.SizeBytes += 512 }, good, rpc.Invalid, "less came"},
		"more than said":   {func(s *berthv1.ImportImageStart) { s.SizeBytes -= 512 }, good, rpc.Invalid, "more came"},
	} {
		start := &berthv1.ImportImageStart{Name: "debian", Pool: "fast", Format: "qcow2", SizeBytes: int64(len(tc.file))}
		if tc.change != nil {
			tc.change(start)
		}
		_, sent, err := send(t, client, start, tc.file, 64<<10)
		if err == nil {
			t.Errorf("%s: taken", name)
			continue
		}
		wantRefusal(t, err, tc.code, "")
		if !strings.Contains(err.Error(), tc.say) {
			t.Errorf("%s: %v, want %q", name, err, tc.say)
		}
		if len(tc.file) == long && sent == long {
			t.Errorf("%s: refused after all of the file had come", name)
		}
	}
	stream := client.ImportImage(t.Context())
	if _, err := stream.CloseAndReceive(); rpc.Detail(err).GetCode() != rpc.Invalid {
		t.Errorf("an empty stream: %v", err)
	}
	if _, _, err := send(t, client, nil, good, 64<<10); rpc.Detail(err).GetCode() != rpc.Invalid || !strings.Contains(
		err.Error(), "does not say what",
	) {
		t.Errorf("a file that nobody announced: %v", err)
	}
	if holdsRoom(t, client) {
		t.Error("room is still held for imports")
	}
}

// An import that control refuses, or whose caller goes away, leaves no file.
func TestAnImportThatFails(t *testing.T) {
	c := newCloud(t, 1)
	c.storagePool(t)
	leading := c.leader()
	leading.control.importImage = func(volumes.ImportImage) (model.Resource, error) {
		return model.Resource{}, &lead.Error{Code: lead.Unavailable, Subject: "pool/fast", Message: "node hv1: silent", NextStep: "wait"}
	}
	file := qcow2File(256<<10, nil)
	start := &berthv1.ImportImageStart{Name: "debian", Pool: "fast", Format: "qcow2", SizeBytes: int64(len(file))}
	_, _, err := send(t, leading.operator(), start, file, 100)
	wantRefusal(t, err, rpc.Unavailable, "pool/fast")

	ctx, goAway := context.WithCancel(t.Context())
	watching := leading.operator()
	stream := leading.operator().ImportImage(ctx)
	c.check(stream.Send(&berthv1.ImportImageRequest{Start: start}))
	c.check(stream.Send(&berthv1.ImportImageRequest{Data: file[:1000]}))
	c.eventually("the import has begun", func() bool { return holdsRoom(t, watching) })
	goAway()
	c.eventually("its room is given back", func() bool { return !holdsRoom(t, watching) })
	if left, err := os.ReadDir(leading.imports); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	_, _ = stream.CloseAndReceive()
}

// holdsRoom tells whether the leader holds room for imports under way: it says so to an import that is larger than any disk.
func holdsRoom(t *testing.T, client berthv1connect.BerthServiceClient) bool {
	t.Helper()
	_, _, err := send(t, client, &berthv1.ImportImageStart{Name: "huge", Pool: "fast", Format: "raw", SizeBytes: qcow2.MaxSize}, nil, 1)
	if rpc.Detail(err).GetCode() != rpc.Unavailable {
		t.Fatalf("want a refusal for want of room, got %v", err)
	}
	return !strings.Contains(err.Error(), fmt.Sprintf("of which %s are for other imports", units.Bytes(0)))
}
