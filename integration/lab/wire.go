package lab

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A wire carries Ethernet frames between a machine's port and a tap on the switch, late and with loss. Frames keep
// their virtio header on the way (checksum and segmentation left to the receiver), so large segments pass whole.
const (
	vnetHeader = 10                    // bytes of struct virtio_net_hdr
	frameLimit = 256 << 10             // bytes, more than the largest segment
	wireQueue  = 16 << 10              // frames on the way
	tunOffload = 0x1 | 0x2 | 0x4 | 0x8 // TUN_F_CSUM, TSO4, TSO6, TSO_ECN of linux/if_tun.h
)

// runWire runs inside the lab until it is killed or the machine loses power.
func runWire(port, delayText, lossText string) error {
	delay, err := time.ParseDuration(delayText)
	if err != nil {
		return err
	}
	var loss float64
	if _, err := fmt.Sscan(lossText, &loss); err != nil {
		return err
	}
	tap, err := openTap(port + wireSuffix)
	for patience := 20; errors.Is(err, unix.EBUSY) && patience > 0; patience-- {
		// The tap of a wire that was just killed goes away a moment later.
		time.Sleep(100 * time.Millisecond)
		tap, err = openTap(port + wireSuffix)
	}
	if err != nil {
		return fmt.Errorf("make the tap %s: %w", port+wireSuffix, err)
	}
	socket, err := openPort(port)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", port, err)
	}
	plug := fmt.Sprintf("link set %s nomaster\nlink set %s master %s up\n", port, port+wireSuffix, bridge)
	if err := runInput(plug, "ip", "-batch", "-"); err != nil {
		return err
	}
	ended := make(chan error, 2)
	go carry(socket, tap, delay, loss, ended)
	go carry(tap, socket, delay, loss, ended)
	fmt.Print(sayUp)
	os.Stdout.Close()
	os.Stderr.Close()
	return <-ended
}

// openTap makes a tap device that lives as long as the descriptor.
func openTap(name string) (int, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err == nil {
		err = unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, tunOffload)
	}
	if err != nil {
		unix.Close(fd)
	}
	return fd, err
}

// openPort gets and sends all frames of an interface.
func openPort(name string) (int, error) {
	device, err := net.InterfaceByName(name)
	if err != nil {
		return 0, err
	}
	// The protocol is in network byte order: 0x0003, all frames.
	const all = uint16(unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		return 0, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err != nil {
		return 0, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
		return 0, err
	}
	promiscuous := unix.PacketMreq{Ifindex: int32(device.Index), Type: unix.PACKET_MR_PROMISC}
	if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &promiscuous); err != nil {
		return 0, err
	}
	return fd, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: device.Index})
}

// carry moves frames one way, in order.
func carry(from, to int, delay time.Duration, loss float64, ended chan<- error) {
	type frame struct {
		due  time.Time
		data []byte
	}
	onTheWay := make(chan frame, wireQueue)
	go func() {
		for f := range onTheWay {
			time.Sleep(time.Until(f.due))
			// A frame that the other side cannot take is a lost frame.
			_, _ = unix.Write(to, f.data)
		}
	}()
	buffer := make([]byte, frameLimit)
	for {
		n, err := unix.Read(from, buffer)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			ended <- err
			return
		}
		if n <= vnetHeader || rand.Float64() < loss {
			continue
		}
		select {
		case onTheWay <- frame{time.Now().Add(delay), append([]byte(nil), buffer[:n]...)}:
		default: // the queue of a real cable is not endless either
		}
	}
}
