package volumes

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// The file system, by ECMA-119 with the Rock Ridge extensions (SUSP 1.12, RRIP 1.12), which give the files their real
// names. It has one folder, and each of its parts begins a sector.
const sector = 2048

// Where the parts begin, in sectors.
const (
	atDescriptor   = 16 + iota // the sectors before are the system's, and empty
	atTerminator               // of the descriptors
	atPathsLittle              // path table, in the one byte order
	atPathsBig                 // and in the other
	atRoot                     // the folder
	atContinuation             // what does not fit into the folder: which extensions there are
	atFiles
)

// file is one file of the folder.
type file struct {
	name    string // at most 100 bytes
	short   string // for readers without Rock Ridge
	content []byte
}

// write makes the file system. The files are in the order of their short names.
func write(files []file) []byte {
	entries := [][]byte{
		record("\x00", atRoot, sector, true, join(sharing(), mode(0o040555, 2), continued(len(extensions())))),
		record("\x01", atRoot, sector, true, mode(0o040555, 2)),
	}
	var contents bytes.Buffer
	for _, f := range files {
		at := atFiles + contents.Len()/sector
		entries = append(entries, record(f.short, at, len(f.content), false, join(mode(0o100444, 1), named(f.name))))
		contents.Write(padded(f.content))
	}
	image := make([]byte, atDescriptor*sector)
	for _, part := range [][]byte{
		descriptor(atFiles + contents.Len()/sector), terminator(), paths(binary.LittleEndian), paths(binary.BigEndian),
		bytes.Join(entries, nil), extensions(),
	} {
		image = append(image, padded(part)...)
	}
	return append(image, contents.Bytes()...)
}

// padded fills the last sector up.
func padded(part []byte) []byte {
	return append(part, make([]byte, (sector-len(part)%sector)%sector)...)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// both32 and both16 are numbers in both byte orders, the little one first.
func both32(n int) []byte {
	return binary.BigEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, uint32(n)), uint32(n))
}

func both16(n int) []byte {
	return binary.BigEndian.AppendUint16(binary.LittleEndian.AppendUint16(nil, uint16(n)), uint16(n))
}

// spaces fills a text up to a length.
func spaces(text string, length int) []byte {
	return []byte(text + strings.Repeat(" ", length-len(text)))
}

// record is a folder's entry (ECMA-119, 9.1), with the fields of the extensions behind it.
func record(name string, at, size int, folder bool, extended []byte) []byte {
	flags := byte(0)
	if folder {
		flags = 2
	}
	// The time is always the first that the format has: the same seed is the same bytes.
	out := join([]byte{0, 0}, both32(at), both32(size), []byte{0, 1, 1, 0, 0, 0, 0}, []byte{flags, 0, 0}, both16(1),
		[]byte{byte(len(name))}, []byte(name))
	if len(out)%2 != 0 {
		out = append(out, 0)
	}
	out = append(out, extended...)
	if len(out)%2 != 0 {
		out = append(out, 0)
	}
	out[0] = byte(len(out))
	return out
}

// descriptor is the primary volume descriptor (ECMA-119, 8.4) of a volume of so many sectors.
func descriptor(sectors int) []byte {
	never := join([]byte("0000000000000000"), []byte{0})
	return join(
		[]byte("\x01CD001\x01\x00"), spaces("", 32), spaces(label, 32), make([]byte, 8), both32(sectors), make([]byte, 32),
		both16(1), both16(1), both16(sector), both32(len(paths(binary.LittleEndian))),
		binary.LittleEndian.AppendUint32(nil, atPathsLittle), make([]byte, 4),
		binary.BigEndian.AppendUint32(nil, atPathsBig), make([]byte, 4),
		record("\x00", atRoot, sector, true, nil),
		spaces("", 4*128), spaces("", 3*37), // nobody published or prepared it
		never, never, never, never, []byte{1, 0},
	)
}

func terminator() []byte { return []byte("\xffCD001\x01") }

// paths is the path table (ECMA-119, 9.4): the one folder.
func paths(order binary.AppendByteOrder) []byte {
	return join([]byte{1, 0}, order.AppendUint32(nil, atRoot), order.AppendUint16(nil, 1), []byte{0, 0})
}

// field is one of the extensions' (SUSP, 4).
func field(kind string, content ...[]byte) []byte {
	body := join(content...)
	return join([]byte(kind), []byte{byte(4 + len(body)), 1}, body)
}

// sharing says that there are extensions (SUSP, 5.3).
func sharing() []byte { return field("SP", []byte{0xbe, 0xef, 0}) }

// continued says where the folder's fields go on (SUSP, 5.1).
func continued(length int) []byte {
	return field("CE", both32(atContinuation), both32(0), both32(length))
}

// extensions names Rock Ridge (RRIP, 4.3).
func extensions() []byte {
	const (
		id     = "RRIP_1991A"
		what   = "THE ROCK RIDGE INTERCHANGE PROTOCOL PROVIDES SUPPORT FOR POSIX FILE SYSTEM SEMANTICS"
		source = "PLEASE CONTACT DISC PUBLISHER FOR SPECIFICATION SOURCE.  " +
			"SEE PUBLISHER IDENTIFIER IN PRIMARY VOLUME DESCRIPTOR FOR CONTACT INFORMATION."
	)
	return field("ER", []byte{byte(len(id)), byte(len(what)), byte(len(source)), 1}, []byte(id+what+source))
}

// mode is a file's, with how many names it has (RRIP, 4.1.1). It belongs to root.
func mode(bits, links int) []byte {
	return field("PX", both32(bits), both32(links), both32(0), both32(0))
}

// named is a file's real name (RRIP, 4.1.4).
func named(name string) []byte { return field("NM", []byte{0}, []byte(name)) }
