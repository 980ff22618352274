package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

// berth runs the command line on the operator's machine to its end.
func (s *site) berth(args ...string) lab.Result {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), commandLimit)
	defer cancel()
	result, err := s.lab.CLI(ctx, args...)
	if err != nil {
		s.Fatalf("berth %s: %v", strings.Join(args, " "), err)
	}
	return result
}

// does runs a command that has to work, and returns what it printed.
func (s *site) does(args ...string) string {
	s.Helper()
	result := s.berth(args...)
	if result.Code != 0 {
		s.Fatalf("berth %s: exit code %d\n%s%s", strings.Join(args, " "), result.Code, result.Stdout, result.Stderr)
	}
	return result.Stdout
}

// running is a command that has not ended yet.
type running struct {
	*site
	args   []string
	result chan lab.Result
}

// starts begins a command and does not wait for it.
func (s *site) starts(args ...string) *running {
	r := &running{site: s, args: args, result: make(chan lab.Result, 1)}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Context()), commandLimit)
	s.Cleanup(cancel)
	go func() {
		result, err := s.lab.CLI(ctx, args...)
		if err != nil {
			result.Stderr += err.Error()
			result.Code = -1
		}
		r.result <- result
	}()
	return r
}

// wait is how the command ended.
func (r *running) wait() lab.Result {
	result := <-r.result
	r.result <- result
	return result
}

// ends waits for the command and checks its exit code and that it says all of these.
func (r *running) ends(code int, says ...string) {
	r.Helper()
	r.check(append([]string{"berth"}, r.args...), r.wait(), code, says...)
}

// answers runs a command and checks its exit code and that it says all of these.
func (s *site) answers(args []string, code int, says ...string) lab.Result {
	s.Helper()
	result := s.berth(args...)
	s.check(append([]string{"berth"}, args...), result, code, says...)
	return result
}

// check compares how a command ended with how it has to.
func (s *site) check(args []string, result lab.Result, code int, says ...string) {
	s.Helper()
	text := result.Stdout + result.Stderr
	if result.Code != code {
		s.Errorf("%s: exit code %d, want %d\n%s", strings.Join(args, " "), result.Code, code, text)
	}
	for _, word := range says {
		if !strings.Contains(text, word) {
			s.Errorf("%s does not say %q:\n%s", strings.Join(args, " "), word, text)
		}
	}
}

// refusal is a command that has to be refused.
type refusal struct {
	why  string // the case's name
	args []string
	code int
	says []string // the thing that is wrong, among others
}

// refuse runs each command in turn: it ends with its exit code, names the thing and a next step, and all of them together
// have changed nothing.
func (s *site) refuse(refusals ...refusal) {
	s.Helper()
	before := s.facts()
	for _, r := range refusals {
		result := s.answers(r.args, r.code, append(r.says, "next step: ")...)
		if strings.Contains(result.Stderr, "defect of berth") {
			s.Errorf("%s: berth %s is taken for a defect:\n%s", r.why, strings.Join(r.args, " "), result.Stderr)
		}
	}
	if diff := cmp.Diff(before, s.facts()); diff != "" {
		s.Errorf("what was refused has changed something:\n%s", diff)
	}
}

// facts is all that a refused command could have changed: what Berth has on record, and which guests there are.
func (s *site) facts() []string {
	s.Helper()
	var (
		vms        berthv1.ListVMsResponse
		nodes      berthv1.ListNodesResponse
		operations berthv1.ListOperationsResponse
		members    berthv1.ListMembersResponse
		facts      []string
	)
	ctx, cancel := context.WithTimeout(s.Context(), commandLimit)
	defer cancel()
	s.must(s.lab.Ask(ctx, &vms, "vm", "list"))
	s.must(s.lab.Ask(ctx, &nodes, "node", "list"))
	s.must(s.lab.Ask(ctx, &operations, "operation", "list"))
	s.must(s.lab.Ask(ctx, &members, "coordinator", "list"))
	for _, vm := range vms.GetVms() {
		facts = append(facts, fmt.Sprintf("VM %s (%s) %s on %q, epoch %d, revision %d", vm.GetName(), vm.GetId(), vm.GetState(),
			vm.GetNode(), vm.GetEpoch(), vm.GetRevision()))
	}
	for _, node := range nodes.GetNodes() {
		settings, err := protojson.Marshal(node.GetOwnSettings())
		s.must(err)
		var plain any // protojson varies its blanks on purpose
		s.must(json.Unmarshal(settings, &plain))
		facts = append(facts, fmt.Sprintf("node %s, maintenance %t, settings %v", node.GetName(), node.GetMaintenance(), plain))
	}
	for _, op := range operations.GetOperations() {
		facts = append(facts, fmt.Sprintf("operation %s %s %s", op.GetId(), op.GetKind(), op.GetResult()))
	}
	for _, member := range members.GetMembers() {
		facts = append(facts, fmt.Sprintf("coordinator %s, voter %t", member.GetName(), member.GetVoter()))
	}
	for _, host := range s.lab.Hosts {
		for _, guest := range host.QEMUs() {
			facts = append(facts, fmt.Sprintf("guest %s on %s", guest.Name, host.Name))
		}
	}
	return facts
}
