package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"berth/coordinator/history"
	"berth/coordinator/wire"
)

// maxBody is how large a delivery may be, in bytes.
const maxBody = 64 << 10

// Headers of a delivery. They are those of the Standard Webhooks, which receivers have libraries for.
const (
	headerID        = "webhook-id"
	headerTimestamp = "webhook-timestamp"
	headerSignature = "webhook-signature"
)

// message is what is sent.
type message struct {
	Type      string          `json:"type"`
	Timestamp time.Time       `json:"timestamp"`
	ID        string          `json:"id"`
	Cluster   string          `json:"cluster_id"`
	Subject   string          `json:"subject"`
	Index     uint64          `json:"index"`
	Sequence  uint32          `json:"sequence"`
	Data      json.RawMessage `json:"data"`
}

// told is what a row is to receivers; a decision is nothing to them.
type told struct {
	history.Place
	id, kind, subject string
	at                time.Time
	data              proto.Message
}

func tell(cluster string, row *history.Row) (t told, ok bool) {
	t = told{Place: row.Place, at: row.At()}
	switch {
	case row.Event != nil:
		t.kind, t.subject = row.Event.Kind, row.Event.Subject
		t.data = wire.Event(*row.Event)
	case row.Operation != nil:
		t.kind, t.subject = "operation."+string(row.Operation.Kind), "vm/"+row.Operation.VMName
		t.data = wire.Operation(*row.Operation)
	default:
		return t, false
	}
	// A log that was replaced may have something else in the same place.
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d\n%d\n%d\n%s\n%s", cluster, t.Index, t.Sequence, t.at.UnixNano(), t.kind, t.subject))
	t.id = "msg_" + hex.EncodeToString(sum[:12])
	return t, true
}

func (t *told) body(cluster string) ([]byte, error) {
	data, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(t.data)
	if err != nil {
		return nil, fmt.Errorf("write entry %d of the log: %w", t.Index, err)
	}
	body, err := json.Marshal(message{
		Type: t.kind, Timestamp: t.at.UTC(), ID: t.id, Cluster: cluster, Subject: t.subject, Index: t.Index, Sequence: t.Sequence, Data: data,
	})
	if err == nil && len(body) > maxBody {
		err = fmt.Errorf("it has %d bytes, more than the %d of a delivery: 'berth audit -o json' has it", len(body), maxBody)
	}
	return body, err
}

// sign is the signature of a delivery that is sent at a time.
func sign(secret []byte, id string, at time.Time, body []byte) string {
	sum := hmac.New(sha256.New, secret)
	sum.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
	sum.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(sum.Sum(nil))
}
