package history

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io"
	"sync"
)

// errBlock is what is no block, or is one that was damaged.
var errBlock = errors.New("the block is damaged")

// A block is its head, and then as many bytes as the head says: a sieve of the words that its rows can be looked up by, and the rows.
// Numbers have the highest byte first.
const (
	blockMagic = 0x42485331 // "BHS1"
	headSize   = 52
	sumFrom    = 12 // what the sum covers: all after it
	maxBody    = 64 << 20
	// blockRaw is the size of the rows, before they are packed, at which a block is full. It ends with an entry of the log, so it may be
	// larger by what one entry makes.
	blockRaw = 256 << 10
)

// head says what a block has.
type head struct {
	body          uint32 // bytes
	sum           uint32
	rows          uint32
	sieve         uint32 // bytes of the body
	after         uint64 // it has all rows of entries after this one
	through       uint64 // up to this one
	first, newest int64  // the least and the greatest time of a row, in nanoseconds; of no meaning without rows
}

func (h *head) append(to []byte) []byte {
	for _, n := range []uint32{blockMagic, h.body, h.sum, h.rows, h.sieve} {
		to = binary.BigEndian.AppendUint32(to, n)
	}
	for _, n := range []uint64{h.after, h.through, uint64(h.first), uint64(h.newest)} {
		to = binary.BigEndian.AppendUint64(to, n)
	}
	return to
}

func readHead(data []byte) (h head, err error) {
	if binary.BigEndian.Uint32(data) != blockMagic {
		return h, errBlock
	}
	h.body, h.sum = binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	h.rows, h.sieve = binary.BigEndian.Uint32(data[12:]), binary.BigEndian.Uint32(data[16:])
	h.after, h.through = binary.BigEndian.Uint64(data[20:]), binary.BigEndian.Uint64(data[28:])
	h.first, h.newest = int64(binary.BigEndian.Uint64(data[36:])), int64(binary.BigEndian.Uint64(data[44:]))
	if h.body > maxBody || h.sieve > h.body || h.after > h.through {
		return h, errBlock
	}
	return h, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sumOf(block []byte) uint32 { return crc32.Checksum(block[sumFrom:], castagnoli) }

var packers = sync.Pool{New: func() any {
	packer, _ := flate.NewWriter(nil, flate.DefaultCompression) // fails for an unknown level only
	return packer
}}

// encode makes a block of all rows of the entries after one, through another one.
func encode(after, through uint64, rows []Row) ([]byte, head, error) {
	h := head{after: after, through: through, rows: uint32(len(rows))}
	var words []string
	var packed bytes.Buffer
	packer := packers.Get().(*flate.Writer)
	defer packers.Put(packer)
	packer.Reset(&packed)
	lines := json.NewEncoder(packer)
	lines.SetEscapeHTML(false)
	for i := range rows {
		if err := lines.Encode(&rows[i]); err != nil {
			return nil, h, fmt.Errorf("encode what entry %d of the log made: %w", rows[i].Index, err)
		}
		words = append(words, rows[i].words()...)
		at := rows[i].At().UnixNano()
		if i == 0 {
			h.first, h.newest = at, at
		}
		h.first, h.newest = min(h.first, at), max(h.newest, at)
	}
	if err := packer.Close(); err != nil {
		return nil, h, err
	}
	sieve := sieveOf(words)
	h.sieve, h.body = uint32(len(sieve)), uint32(len(sieve)+packed.Len())
	block := append(append(h.append(make([]byte, 0, headSize+int(h.body))), sieve...), packed.Bytes()...)
	h.sum = sumOf(block)
	binary.BigEndian.PutUint32(block[8:], h.sum)
	return block, h, nil
}

// decode checks a block and reads its rows.
func decode(block []byte) (head, []Row, error) {
	h, err := checked(block)
	if err != nil {
		return h, nil, err
	}
	rows := make([]Row, 0, min(h.rows, 4096))
	lines := json.NewDecoder(io.LimitReader(flate.NewReader(bytes.NewReader(block[headSize+int(h.sieve):])), 16*maxBody))
	for range h.rows {
		var row Row
		if err := lines.Decode(&row); err != nil {
			return h, nil, fmt.Errorf("%w: %w", errBlock, err)
		}
		rows = append(rows, row)
	}
	return h, rows, nil
}

// checked reads the head of a block whose every byte is as it was written.
func checked(block []byte) (head, error) {
	if len(block) < headSize {
		return head{}, errBlock
	}
	h, err := readHead(block)
	if err != nil || len(block) != headSize+int(h.body) || h.sum != sumOf(block) {
		return h, errBlock
	}
	return h, nil
}

// blocks cuts rows into blocks that are not much too large. Each ends with the last row of an entry.
func blocks(after, through uint64, rows []Row) ([]byte, []head, error) {
	var all []byte
	var heads []head
	for begin := true; begin || len(rows) > 0; begin = false {
		n, size := 0, 0
		for n < len(rows) && (size < blockRaw || rows[n].Index == rows[n-1].Index) {
			size += rows[n].weight()
			n++
		}
		last := through
		if n < len(rows) {
			last = rows[n-1].Index
		}
		block, h, err := encode(after, last, rows[:n])
		if err != nil {
			return nil, nil, err
		}
		all, heads = append(all, block...), append(heads, h)
		after, rows = last, rows[n:]
	}
	return all, heads, nil
}

// weight is about how large a row is in a block, before it is packed, in bytes.
func (r *Row) weight() int {
	switch {
	case r.Decision != nil:
		n := 2048 + 256*len(r.Decision.Nodes)
		if r.Decision.Inputs != nil {
			n *= 2
		}
		return n
	case r.Operation != nil:
		return 1024
	}
	return 256 + len(r.Event.Message)
}

// bitsPerWord and probes make a sieve let through about one in a hundred words that it does not have.
const (
	bitsPerWord = 10
	probes      = 5
)

// sieveOf is a Bloom filter of words.
func sieveOf(words []string) []byte {
	distinct := make(map[string]bool)
	for _, word := range words {
		if word != "" {
			distinct[word] = true
		}
	}
	sieve := make([]byte, (len(distinct)*bitsPerWord+7)/8)
	for word := range distinct {
		for _, bit := range bitsOf(word, len(sieve)) {
			sieve[bit/8] |= 1 << (bit % 8)
		}
	}
	return sieve
}

// mayHave is false if no row of the sieve's block has any of the words.
func mayHave(sieve []byte, words []string) bool {
	for _, word := range words {
		has := len(sieve) > 0
		for _, bit := range bitsOf(word, len(sieve)) {
			has = has && sieve[bit/8]&(1<<(bit%8)) != 0
		}
		if has {
			return true
		}
	}
	return len(words) == 0
}

func bitsOf(word string, size int) (bits [probes]uint64) {
	if size == 0 {
		return bits
	}
	sum := fnv.New64a()
	_, _ = io.WriteString(sum, word) // never fails
	hash := sum.Sum64()
	step := hash>>32 | 1
	for i := range bits {
		bits[i] = (hash + uint64(i)*step) % uint64(size*8)
	}
	return bits
}
