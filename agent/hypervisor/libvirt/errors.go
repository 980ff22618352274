package libvirt

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/processes"
)

// causes sorts libvirt's error numbers. What is not listed (operation failed, internal error, ...) has no one meaning:
// the caller has to look at the domain.
var causes = map[error][]libvirtgo.ErrorNumber{
	hypervisor.ErrNotFound: {libvirtgo.ERR_NO_DOMAIN},
	hypervisor.ErrExists:   {libvirtgo.ERR_DOM_EXIST, libvirtgo.ERR_STORAGE_VOL_EXIST},
	hypervisor.ErrNoPool:   {libvirtgo.ERR_NO_STORAGE_POOL},
	hypervisor.ErrNoVolume: {libvirtgo.ERR_NO_STORAGE_VOL},
	hypervisor.ErrInvalidXML: {
		libvirtgo.ERR_XML_ERROR, libvirtgo.ERR_XML_DETAIL, libvirtgo.ERR_XML_INVALID_SCHEMA, libvirtgo.ERR_PARSE_FAILED,
		libvirtgo.ERR_OS_TYPE, libvirtgo.ERR_INVALID_MAC,
	},
	hypervisor.ErrNoMemory:     {libvirtgo.ERR_NO_MEMORY},
	hypervisor.ErrBusy:         {libvirtgo.ERR_OPERATION_TIMEOUT, libvirtgo.ERR_RESOURCE_BUSY, libvirtgo.ERR_BLOCK_COPY_ACTIVE},
	hypervisor.ErrInvalidState: {libvirtgo.ERR_OPERATION_INVALID},
	hypervisor.ErrAborted:      {libvirtgo.ERR_OPERATION_ABORTED, libvirtgo.ERR_MIGRATE_FINISH_OK},
	hypervisor.ErrUnsafe:       {libvirtgo.ERR_MIGRATE_UNSAFE},
	hypervisor.ErrUnsupported: {
		libvirtgo.ERR_CONFIG_UNSUPPORTED, libvirtgo.ERR_OPERATION_UNSUPPORTED,
		libvirtgo.ERR_ARGUMENT_UNSUPPORTED, libvirtgo.ERR_NO_SUPPORT, libvirtgo.ERR_CPU_INCOMPATIBLE,
	},
	hypervisor.ErrDenied: {
		libvirtgo.ERR_AUTH_FAILED, libvirtgo.ERR_AUTH_CANCELLED, libvirtgo.ERR_AUTH_UNAVAILABLE,
		libvirtgo.ERR_ACCESS_DENIED, libvirtgo.ERR_OPERATION_DENIED,
	},
	hypervisor.ErrUnavailable: {libvirtgo.ERR_INVALID_CONN, libvirtgo.ERR_NO_CONNECT},
}

// is tells whether err is libvirt's error of one of these numbers.
func is(err error, numbers ...libvirtgo.ErrorNumber) bool {
	e, ok := errors.AsType[libvirtgo.Error](err)
	return ok && slices.Contains(numbers, e.Code)
}

// explain says an error of libvirt in our words, with its cause if it has one, and keeps libvirt's own behind them.
func explain(err error) error {
	e, ok := errors.AsType[libvirtgo.Error](err)
	if !ok {
		return err
	}
	for cause, numbers := range causes {
		if slices.Contains(numbers, e.Code) {
			return hypervisor.Said(cause, e.Message)
		}
	}
	// These are QEMU's or the kernel's words, and they have no number.
	if strings.Contains(e.Message, "Cannot allocate memory") {
		return hypervisor.Said(hypervisor.ErrNoMemory, e.Message)
	}
	if strings.Contains(e.Message, "No space left on device") || strings.Contains(e.Message, "Disk quota exceeded") {
		return hypervisor.Said(hypervisor.ErrNoSpace, e.Message)
	}
	return processes.Refused(e.Message)
}

// unreachable is explain for a call that failed because libvirtd cannot be asked, whatever number libvirt gives that.
func unreachable(doing string, err error) error {
	if e, ok := errors.AsType[libvirtgo.Error](err); ok {
		return hypervisor.SaidOf(hypervisor.ErrUnavailable, doing, e.Message)
	}
	return fmt.Errorf("%w: %s: %w", hypervisor.ErrUnavailable, doing, err)
}
