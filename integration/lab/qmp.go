package lab

import (
	"encoding/json"
	"fmt"
	"net"
	"time"
)

// monitor is a connection to a guest's second QMP monitor, which libvirt does not know of.
type monitor struct {
	conn    net.Conn
	decoder *json.Decoder
}

// qmpMessage is any line that QEMU sends (QEMU's docs/interop/qmp-spec): a greeting, an answer, an error or an event.
type qmpMessage struct {
	QMP       json.RawMessage
	Return    *qmpReturn
	Error     *struct{ Desc string }
	Event     string
	Timestamp struct{ Seconds, Microseconds int64 }
}

// qmpReturn is the answer to query-status or query-migrate.
type qmpReturn struct {
	Running bool
	Status  string
	RAM     struct{ Total, Remaining, Transferred int64 }
}

func (m qmpMessage) time() time.Time {
	return time.Unix(m.Timestamp.Seconds, m.Timestamp.Microseconds*1000)
}

// dialMonitor connects and enters command mode.
func dialMonitor(path string) (*monitor, error) {
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		return nil, err
	}
	m := &monitor{conn, json.NewDecoder(conn)}
	if greeting, err := m.read(); err != nil || greeting.QMP == nil {
		conn.Close()
		return nil, fmt.Errorf("greeting of %s: %w", path, err)
	}
	if err := m.send("qmp_capabilities"); err != nil {
		conn.Close()
		return nil, err
	}
	return m, nil
}

func (m *monitor) send(command string) error {
	_, err := fmt.Fprintf(m.conn, "{\"execute\": %q}\n", command)
	return err
}

// read waits for the next message. It ends with an error when QEMU ends.
func (m *monitor) read() (qmpMessage, error) {
	var message qmpMessage
	err := m.decoder.Decode(&message)
	return message, err
}
