package agents

import (
	"testing"
	"time"
)

func TestAgentsThatAskAgainAndAgain(t *testing.T) {
	var a asking
	began := time.Now()
	at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	a.sent("n1", at(0))
	a.sent("n2", at(0))
	if n := a.count(at(1)); n != 0 {
		t.Errorf("after a failover each agent is sent on once, and %d count", n)
	}
	a.sent("n1", at(10))
	if n := a.count(at(11)); n != 1 {
		t.Errorf("one has come again, and %d count", n)
	}
	if n := a.count(at(120)); n != 0 || len(a.came) != 0 {
		t.Errorf("later %d count, %d are remembered", n, len(a.came))
	}
}
