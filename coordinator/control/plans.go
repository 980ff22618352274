package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"berth/coordinator/balance"
	"berth/coordinator/cluster"
	"berth/coordinator/estate"
	"berth/coordinator/state"
)

// The kinds of the commands that write plans; with a request's key they make it idempotent.
const (
	drainKind   = "drain node"
	undrainKind = "undrain node"
	proposeKind = "propose plan"
	applyKind   = "apply plan"
	discardKind = "discard plan"
	cancelKind  = "cancel plan"
)

// berth is the caller of what the leader's loops do by themselves.
const berth = "berth"

// ProposePlan plans how a cluster is evened out and keeps the plan until somebody applies or discards it. A plan without
// moves is not kept: its reason says why there is nothing to do. It takes the place of the cluster's last proposal.
func (c *Control) ProposePlan(ctx context.Context, request ProposePlan) (cluster.Plan, error) {
	subject := "cluster/" + request.Cluster
	if request.Most < 0 || request.Most > MaxMost {
		return cluster.Plan{}, &Error{
			Code: Invalid, Subject: subject, Message: fmt.Sprintf("%d moves: want 1 to %d", request.Most, MaxMost),
			NextStep: fmt.Sprintf("leave it out for %d", DefaultMost),
		}
	}
	var plan cluster.Plan
	err := c.plan(ctx, subject, func() (again retry, err error) {
		plan, again, err = c.proposeOnce(ctx, request)
		return again, err
	})
	return plan, err
}

func (c *Control) proposeOnce(ctx context.Context, request ProposePlan) (cluster.Plan, retry, error) {
	snapshot, again, err := c.ready()
	if again != decided || err != nil {
		return cluster.Plan{}, again, err
	}
	if plan, repeated := snapshot.PlanByRequest(request.RequestID); repeated {
		return plan, decided, nil
	}
	if _, known := clusterNamed(snapshot, request.Cluster); !known {
		return cluster.Plan{}, decided, &Error{
			Code: NotFound, Subject: "cluster/" + request.Cluster, Message: fmt.Sprintf("there is no cluster %q", request.Cluster),
			NextStep: "see 'berth cluster list'",
		}
	}
	fleet, err := c.fleet(snapshot, c.Inventory.View(snapshot, c.Now()), request.Cluster)
	if err != nil {
		return cluster.Plan{}, decided, err
	}
	c.evening.Lock()
	plan := balance.Even(fleet, cmp.Or(request.Most, DefaultMost))
	c.evening.Unlock()
	plan.Cluster, plan.Policy = request.Cluster, cmp.Or(plan.Policy, fleet.Policy.Name)
	plan.State, plan.Caller, plan.Request = cluster.PlanProposed, request.Caller, request.RequestID
	plan.CreatedAt = c.Now()
	plan.UpdatedAt = plan.CreatedAt
	if request.DryRun || len(plan.Moves) == 0 {
		return plan, decided, nil
	}
	command := c.planCommand(&plan, proposeKind)
	command.Key = cmp.Or(request.RequestID, command.Key)
	if old, there := proposed(snapshot, plan.Cluster, plan.Kind); there {
		if sameMoves(old.Moves, plan.Moves) {
			return old, decided, nil
		}
		c.replace(&command, old, &plan)
	}
	return c.commitPlan(ctx, command, plan)
}

// ready is the state that a plan can be made on.
func (c *Control) ready() (*state.Snapshot, retry, error) {
	if !c.leading() {
		return nil, decided, errNotLeading
	}
	snapshot := c.Store.Snapshot()
	if err := quarantined(snapshot); err != nil {
		return nil, decided, err
	}
	if !c.settled(snapshot) {
		return nil, unsettled, nil
	}
	return snapshot, decided, nil
}

// ApplyPlan sets a proposed plan going.
func (c *Control) ApplyPlan(ctx context.Context, request ApplyPlan) (cluster.Plan, error) {
	if err := sensibleLimits("plan/"+request.Plan, request.Parallel, 0); err != nil {
		return cluster.Plan{}, err
	}
	return c.steer(ctx, request.Plan, request.RequestID, applyKind, request.Caller, func(snapshot *state.Snapshot, plan *cluster.Plan) (string, error) {
		if plan.State != cluster.PlanProposed {
			return "", notProposed(plan)
		}
		if err := quarantined(snapshot); err != nil {
			return "", err
		}
		if other, runs := running(snapshot, plan.Cluster); runs {
			return "", &Error{
				Code: Conflict, Subject: "plan/" + plan.ID,
				Message:  fmt.Sprintf("plan %s (%s) is carried out in cluster %q", other.ID, other.Kind, plan.Cluster),
				NextStep: fmt.Sprintf("wait for it with 'berth plan watch %s', or end it with 'berth plan cancel %s'", other.ID, other.ID),
			}
		}
		plan.State = cluster.PlanRunning
		plan.Parallel = cmp.Or(request.Parallel, plan.Parallel)
		return "is carried out: " + plan.Reason, nil
	})
}

// DiscardPlan ends a proposed plan without any move.
func (c *Control) DiscardPlan(ctx context.Context, request DiscardPlan) (cluster.Plan, error) {
	return c.steer(ctx, request.Plan, request.RequestID, discardKind, request.Caller, func(_ *state.Snapshot, plan *cluster.Plan) (string, error) {
		if plan.State != cluster.PlanProposed {
			return "", notProposed(plan)
		}
		discard(plan, nobodyWants, c.Now())
		return plan.Message, nil
	})
}

// nobodyWants is the message of a plan that a person has discarded.
const nobodyWants = "nobody wants it"

func notProposed(plan *cluster.Plan) *Error {
	next := "make a new one with 'berth plan new'"
	if plan.State == cluster.PlanRunning {
		next = fmt.Sprintf("end it with 'berth plan cancel %s'", plan.ID)
	}
	return &Error{
		Code: Conflict, Subject: "plan/" + plan.ID, Message: fmt.Sprintf("plan %s is %s: nothing is proposed any more", plan.ID, plan.State), NextStep: next,
	}
}

// discard ends a proposal.
func discard(plan *cluster.Plan, why string, at time.Time) {
	plan.State, plan.Message, plan.UpdatedAt, plan.EndedAt = cluster.PlanDiscarded, why, at, at
	for i := range plan.Moves {
		plan.Moves[i].Result = MoveLeft
	}
}

// CancelPlan ends a running plan: no further move begins. With Abort, moves that copy are given up, too; one that was
// cancelled before may be aborted as long as something copies.
func (c *Control) CancelPlan(ctx context.Context, request CancelPlan) (cluster.Plan, error) {
	plan, err := c.steer(ctx, request.Plan, request.RequestID, cancelKind, request.Caller, func(_ *state.Snapshot, plan *cluster.Plan) (string, error) {
		switch {
		case plan.State == cluster.PlanProposed:
			return "", &Error{
				Code: Conflict, Subject: "plan/" + plan.ID, Message: fmt.Sprintf("plan %s was never begun", plan.ID),
				NextStep: fmt.Sprintf("discard it with 'berth plan discard %s'", plan.ID),
			}
		case !unfinished(plan):
			return "", &Error{
				Code: Conflict, Subject: "plan/" + plan.ID, Message: fmt.Sprintf("plan %s has ended already (%s)", plan.ID, plan.State),
				NextStep: "nothing is left to cancel",
			}
		case plan.State == cluster.PlanCancelled:
			return "", nil
		}
		plan.State, plan.Message = cluster.PlanCancelled, "cancelled by "+request.Caller
		return "no further move begins", nil
	})
	if err != nil || !request.Abort {
		return plan, err
	}
	return plan, c.abortMoves(ctx, plan.ID, request.Caller)
}

// abortMoves gives up what copies for a plan. One that ends meanwhile is as good as given up.
func (c *Control) abortMoves(ctx context.Context, plan, caller string) error {
	for _, op := range c.Store.Snapshot().OperationsOfPlan(plan) {
		if !op.Live() || op.Cancel {
			continue
		}
		_, err := c.CancelOperation(ctx, op.ID, caller)
		if refusal := (*Error)(nil); errors.As(err, &refusal) && refusal.Code == Conflict {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// steer changes a plan's record. Change returns what the history says, or nothing when the plan stays as it is.
func (c *Control) steer(
	ctx context.Context, id, request, kind, caller string, change func(*state.Snapshot, *cluster.Plan) (string, error),
) (cluster.Plan, error) {
	for range maxReplans {
		if !c.leading() {
			return cluster.Plan{}, errNotLeading
		}
		snapshot := c.Store.Snapshot()
		plan, known := snapshot.Plan(id)
		switch {
		case !known:
			return cluster.Plan{}, noPlan(id)
		case snapshot.Answered(request, kind):
			return plan, nil
		}
		after := plan
		said, err := change(snapshot, &after)
		if err != nil || said == "" {
			return plan, err
		}
		after.UpdatedAt = c.Now()
		command := c.planCommand(&after, kind)
		command.Key, command.Caller = cmp.Or(request, command.Key), caller
		command.Events[0].Caller, command.Events[0].Message = caller, planText(&after, said)
		after, again, err := c.commitPlan(ctx, command, after)
		if again == decided {
			return after, err
		}
	}
	return cluster.Plan{}, errTooBusy("plan/" + id)
}

// planCommand writes one plan. A new one gets its ID.
func (c *Control) planCommand(plan *cluster.Plan, kind string) state.Command {
	if plan.ID == "" {
		plan.ID = c.newID()
	}
	return state.Command{
		Key: c.newID(), Kind: kind, Caller: plan.Caller, At: plan.UpdatedAt,
		Expect: []state.Expectation{{Table: state.Plans, ID: plan.ID, Revision: plan.Revision}},
		Plans:  []cluster.Plan{*plan},
		Events: []cluster.Event{{
			At: plan.UpdatedAt, Kind: eventOf(plan), Subject: subjectOf(plan), Caller: plan.Caller,
			Message: planText(plan, plan.Reason),
		}},
	}
}

// include writes a plan in a command that changes more.
func (c *Control) include(command *state.Command, plan *cluster.Plan, said string) {
	made := c.planCommand(plan, command.Kind)
	made.Events[0].Caller, made.Events[0].Message = command.Caller, planText(plan, said)
	command.Plans, command.Expect = append(command.Plans, *plan), append(command.Expect, made.Expect...)
	command.Events = append(command.Events, made.Events...)
}

func eventOf(plan *cluster.Plan) string {
	switch {
	case plan.State == cluster.PlanRunning:
		return "plan.begun"
	case plan.State == cluster.PlanCancelled && !plan.EndedAt.IsZero():
		return "plan.ended"
	default:
		return "plan." + string(plan.State)
	}
}

// subjectOf is what a plan's events are about.
func subjectOf(plan *cluster.Plan) string {
	if plan.NodeName != "" {
		return "node/" + plan.NodeName
	}
	return "cluster/" + plan.Cluster
}

func planText(plan *cluster.Plan, said string) string {
	return fmt.Sprintf("%s plan %s: %s", plan.Kind, plan.ID, said)
}

// commitPlan proposes the command and sets the plan going if it runs.
func (c *Control) commitPlan(ctx context.Context, command state.Command, plan cluster.Plan) (cluster.Plan, retry, error) {
	result, err := c.propose(ctx, command)
	switch {
	case err != nil:
		return cluster.Plan{}, decided, err
	case result.Refusal == nil:
		plan.Revision = result.Index
		if unfinished(&plan) {
			c.execute(plan.ID)
		}
		return plan, decided, nil
	case result.Refusal.Code == state.Stale:
		return cluster.Plan{}, moved, nil
	default:
		return cluster.Plan{}, decided, fromRefusal(result.Refusal, "")
	}
}

// writePlan writes what the leader found about a plan. Whoever calls looks again afterwards.
func (c *Control) writePlan(ctx context.Context, plan *cluster.Plan, kind, said string) {
	command := c.planCommand(plan, kind)
	command.Events[0].Message = planText(plan, said)
	result, err := c.propose(ctx, command)
	switch {
	case err != nil && ctx.Err() == nil:
		c.Logger.Warn("a plan's step could not be committed", "plan", plan.ID, "error", err)
	case err == nil && result.Refusal != nil && result.Refusal.Code != state.Stale:
		c.Logger.Error("a plan's step was refused", "plan", plan.ID, "refusal", result.Refusal.Message)
	}
}

// replace discards an earlier proposal in the command that keeps the next one.
func (c *Control) replace(command *state.Command, old cluster.Plan, next *cluster.Plan) {
	discard(&old, fmt.Sprintf("plan %s took its place", next.ID), next.CreatedAt)
	command.Expect = append(command.Expect, state.Expectation{Table: state.Plans, ID: old.ID, Revision: old.Revision})
	command.Plans = append(command.Plans, old)
}

// proposed is the plan of a kind that waits in a cluster for somebody to apply it.
func proposed(snapshot *state.Snapshot, clusterName string, kind cluster.PlanKind) (cluster.Plan, bool) {
	return livePlan(snapshot, func(p *cluster.Plan) bool {
		return p.State == cluster.PlanProposed && p.Cluster == clusterName && p.Kind == kind
	})
}

// running is a plan that is carried out in a cluster.
func running(snapshot *state.Snapshot, clusterName string) (cluster.Plan, bool) {
	return livePlan(snapshot, func(p *cluster.Plan) bool { return p.State == cluster.PlanRunning && p.Cluster == clusterName })
}

func livePlan(snapshot *state.Snapshot, wanted func(*cluster.Plan) bool) (cluster.Plan, bool) {
	live := snapshot.LivePlans()
	for i := range live {
		if wanted(&live[i]) {
			return live[i], true
		}
	}
	return cluster.Plan{}, false
}

func sameMoves(a, b []cluster.Move) bool {
	return slices.EqualFunc(a, b, func(a, b cluster.Move) bool {
		return a.VM == b.VM && a.Source == b.Source && a.Target == b.Target
	})
}

// fleet is a cluster as the engines for moves look at it. The caller holds evening while something reads its history.
func (c *Control) fleet(snapshot *state.Snapshot, view *cluster.View, clusterName string) (*balance.Fleet, error) {
	plans := slices.DeleteFunc(snapshot.Plans(), func(p cluster.Plan) bool { return p.Cluster != clusterName })
	fleet, err := estate.FleetOf(snapshot, view, clusterName, plans)
	if err != nil {
		return nil, &Error{
			Code: Invalid, Subject: "cluster/" + clusterName, Message: err.Error(), NextStep: "link it to what there is, see 'berth cluster --help'",
		}
	}
	c.evening.Lock()
	defer c.evening.Unlock()
	if c.histories[clusterName] == nil {
		c.histories[clusterName] = &balance.History{}
	}
	fleet.Seed, fleet.History = c.Random, c.histories[clusterName]
	return fleet, nil
}

func noPlan(id string) error {
	return &Error{
		Code: NotFound, Subject: "plan/" + id, Message: fmt.Sprintf("there is no plan %q", id), NextStep: "see 'berth plan list'",
	}
}

func noNode(id string) error {
	return &Error{
		Code: NotFound, Subject: "node/" + id, Message: fmt.Sprintf("there is no node %q", id), NextStep: "see 'berth node list'",
	}
}
