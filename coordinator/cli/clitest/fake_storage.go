package clitest

import (
	"context"
	"errors"
	"io"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
)

// storageFake is what a fake answers about pools, images, disks, consoles and how VMs are spread.
type storageFake struct {
	listPools     func(*berthv1.ListPoolsRequest) (*berthv1.ListPoolsResponse, error)
	growDisk      func(*berthv1.GrowDiskRequest) (*berthv1.GrowDiskResponse, error)
	spread        func(*berthv1.SpreadRequest) (*berthv1.SpreadResponse, error)
	OnImportImage func(start *berthv1.ImportImageStart, file []byte) (*berthv1.ImportImageResponse, error)
	OnConsole     func(stream *connect.BidiStream[berthv1.ConsoleRequest, berthv1.ConsoleResponse]) error
}

// ListPools records the request and gives the canned answer.
func (f *Fake) ListPools(
	_ context.Context, r *connect.Request[berthv1.ListPoolsRequest],
) (*connect.Response[berthv1.ListPoolsResponse], error) {
	return answer(f, r, f.listPools)
}

// GrowDisk records the request and gives the canned answer.
func (f *Fake) GrowDisk(
	_ context.Context, r *connect.Request[berthv1.GrowDiskRequest],
) (*connect.Response[berthv1.GrowDiskResponse], error) {
	return answer(f, r, f.growDisk)
}

// Spread records the request and gives the canned answer.
func (f *Fake) Spread(_ context.Context, r *connect.Request[berthv1.SpreadRequest]) (*connect.Response[berthv1.SpreadResponse], error) {
	return answer(f, r, f.spread)
}

// ImportImage records the first message and gives it, with the whole upload, to OnImportImage.
func (f *Fake) ImportImage(
	_ context.Context, stream *connect.ClientStream[berthv1.ImportImageRequest],
) (*connect.Response[berthv1.ImportImageResponse], error) {
	if !stream.Receive() {
		return nil, stream.Err()
	}
	start := stream.Msg().GetStart()
	f.record(start)
	var file []byte
	for stream.Receive() {
		file = append(file, stream.Msg().GetData()...)
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	message, err := f.OnImportImage(start, file)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(message), nil
}

// Console records the first message and leaves the rest of the stream to OnConsole.
func (f *Fake) Console(_ context.Context, stream *connect.BidiStream[berthv1.ConsoleRequest, berthv1.ConsoleResponse]) error {
	first, err := stream.Receive()
	if err != nil {
		return err
	}
	f.record(first)
	return f.OnConsole(stream)
}

// echo is a guest that repeats what is typed and says bye at the end of it, or when it is told to stop.
func echo(stream *connect.BidiStream[berthv1.ConsoleRequest, berthv1.ConsoleResponse]) error {
	for {
		typed, err := stream.Receive()
		if errors.Is(err, io.EOF) || string(typed.GetData()) == "stop\r" {
			return stream.Send(&berthv1.ConsoleResponse{Data: []byte("bye")})
		}
		if err != nil {
			return err
		}
		if err := stream.Send(&berthv1.ConsoleResponse{Data: typed.GetData()}); err != nil {
			return err
		}
	}
}

func cannedStorage() storageFake {
	const gib = 1 << 30
	pools := []*berthv1.Pool{
		{
			Name: "fast", Cluster: "default", Scope: "local", Source: "default", OverProvisioning: 2, Disks: 3, Images: 1,
			Shares: []*berthv1.PoolShare{
				{
					Nodes: []string{"node1"}, CapacityBytes: 100 * gib, AvailableBytes: 80 * gib, PromisedBytes: 45 * gib, LimitBytes: 200 * gib,
					Disks: 2,
				},
				{Nodes: []string{"node2"}, CapacityBytes: 50 * gib, AvailableBytes: 49 * gib, PromisedBytes: 25 * gib, LimitBytes: 100 * gib, Disks: 1},
				{Missing: []string{"node3: the pool is not active there"}},
			},
		},
		{
			Name: "nfs", Cluster: "prod", Scope: "shared", Source: "nfs", OverProvisioning: 1,
			Shares: []*berthv1.PoolShare{{
				Nodes: []string{"node4", "node5"}, CapacityBytes: 4096 * gib, AvailableBytes: 4000 * gib, LimitBytes: 4096 * gib,
			}},
		},
	}
	return storageFake{
		listPools: func(r *berthv1.ListPoolsRequest) (*berthv1.ListPoolsResponse, error) {
			answer := &berthv1.ListPoolsResponse{SchemaVersion: "1"}
			for _, pool := range pools {
				if r.GetPool() == "" || r.GetPool() == pool.GetName() {
					answer.Pools = append(answer.Pools, pool)
				}
			}
			return answer, nil
		},
		growDisk: func(r *berthv1.GrowDiskRequest) (*berthv1.GrowDiskResponse, error) {
			return &berthv1.GrowDiskResponse{SchemaVersion: "1", Disk: &berthv1.Resource{Kind: "disk", Name: r.GetDisk()}}, nil
		},
		spread: func(r *berthv1.SpreadRequest) (*berthv1.SpreadResponse, error) {
			return &berthv1.SpreadResponse{
				SchemaVersion: "1", Customer: r.GetCustomer(), Vms: 9,
				Zones: &berthv1.SpreadLevel{Used: 1, Total: 1, Most: 9, Least: 9}, Pods: &berthv1.SpreadLevel{Used: 4, Total: 4, Most: 3, Least: 2},
				Clusters: &berthv1.SpreadLevel{Used: 9, Total: 12, Most: 1, Least: 1}, Nodes: &berthv1.SpreadLevel{
					Used: 9, Total: 200, Most: 1, Least: 1,
				},
			}, nil
		},
		OnImportImage: func(start *berthv1.ImportImageStart, _ []byte) (*berthv1.ImportImageResponse, error) {
			return &berthv1.ImportImageResponse{SchemaVersion: "1", Image: &berthv1.Resource{
				Kind: "image", Name: start.GetName(), Volume: &berthv1.ResourceVolume{
					Pool: start.GetPool(), Name: "berth-i1.qcow2", Format: start.GetFormat(), CapacityBytes: gib, Sha256: start.GetSha256(),
				},
			}}, nil
		},
		OnConsole: echo,
	}
}
