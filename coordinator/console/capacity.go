package console

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// roomPage is what the page says of how many more VMs fit, also with nodes that are not there.
type roomPage struct {
	Memory, VCPUs, Cluster, VDC string // as they were asked for
	Add, Like, Large            string
	Nodes                       []string // that an added one may be like
	Answer                      *berthv1.CapacityResponse
	Rows                        []roomRow
}

// roomRow is one node, with how much of the largest number its own is, of 100.
type roomRow struct {
	*berthv1.CapacityNode

	Share string
}

var errSize = errors.New("this is not a size or a number that can be: write 4G, for instance, and whole numbers above 0")

// showRoom counts how many more VMs of a size fit. It changes nothing, so whoever may only look may ask it, too.
func showRoom(v *visit) (*page, error) {
	shown := roomPage{
		Memory: v.asked("memory"), VCPUs: cmp.Or(v.asked("vcpus"), "1"), Cluster: v.asked("cluster"), VDC: v.asked("vdc"),
		Add: v.asked("add"), Like: v.asked("like"), Large: v.asked("large"),
	}
	nodes, err := allNodes(v.ctx, v)
	if err != nil {
		return nil, err
	}
	for _, node := range nodes {
		shown.Nodes = append(shown.Nodes, node.GetName())
	}
	made := &page{name: "room", Title: "How many more fit?", Here: "plans", Command: "berth capacity --memory 4G"}
	if shown.Memory != "" {
		request, err := shown.request()
		if err != nil {
			return nil, err
		}
		answer, err := v.API.Capacity(v.ctx, connect.NewRequest(request))
		if err != nil {
			return nil, err
		}
		shown.Answer = answer.Msg
		made.Command = shown.command()
		most := int32(1)
		for _, node := range shown.Answer.GetNodes() {
			most = max(most, node.GetMore())
		}
		for _, node := range shown.Answer.GetNodes() {
			shown.Rows = append(shown.Rows, roomRow{node, fmt.Sprintf("%.1f", 100*float64(node.GetMore())/float64(most))})
		}
		slices.SortStableFunc(shown.Rows, func(a, b roomRow) int { return lacking(a.GetAdded()) - lacking(b.GetAdded()) })
	}
	made.Body = shown
	return made, nil
}

// request is what is asked of the API.
func (r *roomPage) request() (*berthv1.CapacityRequest, error) {
	memory, bad := units.ParseBytes(r.Memory)
	vcpus, not := strconv.ParseInt(r.VCPUs, 10, 32)
	if bad != nil || not != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, errSize)
	}
	request := &berthv1.CapacityRequest{MemoryBytes: int64(memory), Vcpus: int32(vcpus), Cluster: r.Cluster, Vdc: r.VDC}
	if r.Add == "" || r.Add == "0" {
		return request, nil
	}
	count, bad := strconv.ParseInt(r.Add, 10, 32)
	if r.Large != "" && bad == nil {
		var large units.Bytes
		large, bad = units.ParseBytes(r.Large)
		request.AddMemoryBytes = int64(large)
	}
	if bad != nil || count < 1 {
		return nil, connect.NewError(connect.CodeInvalidArgument, errSize)
	}
	request.AddNodes, request.AddLike = int32(count), r.Like
	return request, nil
}

// command tells the same.
func (r *roomPage) command() string {
	words := []string{"berth capacity --memory", quoted(r.Memory), "--vcpus", quoted(r.VCPUs)}
	for _, flag := range []struct{ name, value string }{{"--cluster", r.Cluster}, {"--vdc", r.VDC}} {
		if flag.value != "" {
			words = append(words, flag.name, quoted(flag.value))
		}
	}
	if r.Answer.GetAdded() != "" {
		added := r.Add
		if r.Like != "" {
			added += ":" + r.Like
		}
		words = append(words, "--add-nodes", quoted(added))
		if r.Large != "" {
			words = append(words, "--add-memory", quoted(r.Large))
		}
	}
	return strings.Join(words, " ")
}
