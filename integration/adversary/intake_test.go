package adversary

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
)

const (
	plain  = "application/connect+proto"
	packed = 1 // flag of a compressed message

	// mostGrowth is what the coordinator may take for one hostile message, in bytes. What it was made to take before was 333 MB.
	mostGrowth = 128 << 20
)

// domains are an inventory with so many empty domains: two bytes each on the wire.
func domains(count int) []byte {
	list := bytes.Repeat([]byte{0x12, 0}, count)
	return append(varint([]byte{0x1a}, len(list)), list...)
}

func varint(to []byte, value int) []byte {
	for ; value >= 0x80; value >>= 7 {
		to = append(to, byte(value)|0x80)
	}
	return append(to, byte(value))
}

func pack(t *testing.T, data []byte) []byte {
	t.Helper()
	var into bytes.Buffer
	writer := gzip.NewWriter(&into)
	if _, err := writer.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return into.Bytes()
}

// grows tells by how much the heap grows at most while something is done.
func grows(do func()) uint64 {
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	most, done, watched := uint64(0), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			runtime.ReadMemStats(&now)
			most = max(most, max(now.HeapAlloc, before.HeapAlloc)-before.HeapAlloc)
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	do()
	close(done)
	<-watched
	return most
}

func TestWhoHasNotSaidHelloIsNotRead(t *testing.T) {
	l := lead(t)
	good, bad := l.open("n1"), l.client("n2")
	greeting := encode(t, hello("n2"))
	for name, c := range map[string]struct {
		kind, want string
		body       []byte
	}{
		"16 MiB at once":          {plain, "resource_exhausted", envelope(0, domains(8<<20-16))},
		"a length of 4 GiB alone": {plain, "resource_exhausted", []byte{0, 0xff, 0xff, 0xff, 0xff}},
		"4 KB that unpack":        {plain, "invalid_argument", envelope(packed, pack(t, domains(8<<20-16)))},
		"a packed hello":          {plain, "invalid_argument", envelope(packed, pack(t, greeting))},
		"many in a small one":     {plain, "invalid_argument", envelope(0, domains(100_000))},
		"a hello as JSON": {"application/connect+json", "415 Unsupported Media Type", envelope(0, fmt.Appendf(nil,
			`{"sequence":1,"hello":{"nodeId":"n2","clusterId":%q,"incarnation":"b/1"}}`, cluster,
		))},
	} {
		var got string
		grown := grows(func() { got = l.raw(bad, berthv1connect.AgentServiceSessionProcedure, c.kind, bytes.NewReader(c.body)) })
		if got != c.want || grown > mostGrowth {
			t.Errorf("%s: answered %q after %d MiB, want %q", name, got, grown>>20, c.want)
		}
	}
	for _, body := range [][]byte{envelope(0, make([]byte, 1<<20)), envelope(packed, pack(t, []byte("x")))} {
		got := l.raw(bad, berthv1connect.AgentServiceTunnelProcedure, plain, bytes.NewReader(body))
		if got != "resource_exhausted" && got != "invalid_argument" {
			t.Errorf("a tunnel that begins with %d bytes: %q", len(body), got)
		}
	}
	good.works("6c0e8bd2-6f4f-4c55-8b3e-000000000001")
}

func TestWhatAnAdmittedAgentSaysIsBounded(t *testing.T) {
	l := lead(t)
	good, bad := l.open("n1"), l.client("n2")
	greeting := hello("n2")
	for name, body := range map[string][]byte{
		"8 million domains":            envelope(0, domains(8<<20-16)),
		"8 million domains in 16 KB":   envelope(packed, pack(t, domains(8<<20-16))),
		"2 GiB of zeros in 2 MB":       envelope(packed, zeros(t, 2<<30)),
		"more than a message may have": envelope(0, make([]byte, 17<<20)),
	} {
		greeting.Sequence++
		greeting.GetHello().Incarnation += "+"
		first := envelope(0, encode(t, greeting))
		began := time.Now()
		var got string
		grown := grows(func() {
			got = l.raw(bad, berthv1connect.AgentServiceSessionProcedure, plain, bytes.NewReader(append(first, body...)))
		})
		if got != "resource_exhausted" && got != "invalid_argument" || grown > mostGrowth {
			t.Errorf("%s: answered %q after %d MiB and %s", name, got, grown>>20, time.Since(began))
		}
	}
	good.works("6c0e8bd2-6f4f-4c55-8b3e-000000000002")
}

// zeros are packed by parts, because nobody has so many at once.
func zeros(t *testing.T, size int64) []byte {
	t.Helper()
	var into bytes.Buffer
	writer, err := gzip.NewWriterLevel(&into, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(writer, zero{}, size); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return into.Bytes()
}

type zero struct{}

func (zero) Read(into []byte) (int, error) {
	clear(into)
	return len(into), nil
}

func TestOneNodeHasFewStreams(t *testing.T) {
	l := lead(t)
	good := l.open("n1")
	var refused, taken atomic.Int32
	release := make(chan struct{})
	ended := make(chan struct{})
	const streams = 40
	for i := range streams {
		client := l.client("n2") // a connection each
		go func() {
			defer func() { ended <- struct{}{} }()
			reader, writer := io.Pipe()
			go func() {
				<-release
				_ = writer.Close()
			}()
			procedure := berthv1connect.AgentServiceSessionProcedure
			if i%2 == 0 {
				procedure = berthv1connect.AgentServiceTunnelProcedure
			}
			if strings.HasPrefix(l.raw(client, procedure, plain, reader), "resource_exhausted") {
				refused.Add(1)
				return
			}
			taken.Add(1)
		}()
	}
	l.eventually("a refusal for each session but four", func() bool { return refused.Load() == streams/2-4 })
	good.works("6c0e8bd2-6f4f-4c55-8b3e-000000000003")
	close(release)
	for range streams {
		<-ended
	}
	if taken.Load() != streams/2+4 {
		t.Errorf("%d streams were taken", taken.Load())
	}
	// What has ended counts no more, and an agent that packs what it says is welcome.
	again := l.open("n2", connect.WithSendGzip(), connect.WithCompressMinBytes(1<<10))
	again.list(&berthv1.Domain{
		Uuid: "6c0e8bd2-6f4f-4c55-8b3e-000000000004", Name: strings.Repeat("x", 2<<10), State: berthv1.DomainState_DOMAIN_STATE_RUNNING,
	})
	l.eventually("what n2 says", func() bool { return len(l.inventory.Domains("n2")) == 1 })
}
