// Package exposition writes figures in the text format that Prometheus reads (version 0.0.4).
//
// A page is written as it is collected: nothing of it is kept, so that the figures of ten thousand nodes cost no more memory than
// those of one.
package exposition

import (
	"bufio"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ContentType is that of a page.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Type is what a metric does over time.
type Type string

// The types of metrics.
const (
	Gauge     Type = "gauge"     // goes up and down
	Counter   Type = "counter"   // only grows, and begins anew with its process; its name ends with _total
	Histogram Type = "histogram" // counts what was observed, by upper bounds
)

// Family is one metric: its name, what it means, and the labels of its samples. Families are made once and never changed.
type Family struct {
	Name   string // berth_ and words with _ between, the unit at the end: seconds, bytes, ratio
	Help   string // one sentence without a full stop
	Type   Type
	Labels []string
}

// Page takes samples and writes them. The samples of one family have to come one after the other. It is not for several goroutines.
type Page struct {
	to      *bufio.Writer
	open    *Family // whose heading is written
	scratch []byte
}

// NewPage begins a page. Flush ends it.
func NewPage(to io.Writer) *Page { return &Page{to: bufio.NewWriterSize(to, 64<<10)} }

// Flush writes what is left. Its error is the first one of all writing.
func (p *Page) Flush() error { return p.to.Flush() }

// Sample writes one sample. It has a value for each label of the family; an empty one is a label that is not there.
func (p *Page) Sample(of *Family, value float64, labels ...string) {
	p.head(of)
	p.line(of.Name, "", of.Labels, labels, "", value)
}

// Known is Sample of a figure that may not be known: then there is no sample, and never a zero.
func (p *Page) Known(of *Family, value *float64, labels ...string) {
	if value != nil {
		p.Sample(of, *value, labels...)
	}
}

// Flag is Sample of what is so (1) or not (0).
func (p *Page) Flag(of *Family, is bool, labels ...string) {
	value := 0.0
	if is {
		value = 1
	}
	p.Sample(of, value, labels...)
}

// Distribution writes the samples of a histogram.
func (p *Page) Distribution(of *Family, d *Distribution, labels ...string) {
	p.head(of)
	sum := uint64(0)
	for i, bound := range d.bounds {
		sum += d.counts[i]
		p.line(of.Name, "_bucket", of.Labels, labels, strconv.FormatFloat(bound, 'g', -1, 64), float64(sum))
	}
	p.line(of.Name, "_bucket", of.Labels, labels, "+Inf", float64(d.count))
	p.line(of.Name, "_sum", of.Labels, labels, "", d.sum)
	p.line(of.Name, "_count", of.Labels, labels, "", float64(d.count))
}

// head writes the heading of a family before its first sample.
func (p *Page) head(of *Family) {
	if p.open == of {
		return
	}
	p.open = of
	for _, part := range []string{"# HELP ", of.Name, " "} {
		_, _ = p.to.WriteString(part)
	}
	p.escape(of.Help, false)
	for _, part := range []string{"\n# TYPE ", of.Name, " ", string(of.Type), "\n"} {
		_, _ = p.to.WriteString(part)
	}
}

func (p *Page) line(name, suffix string, labels, values []string, bound string, value float64) {
	_, _ = p.to.WriteString(name)
	_, _ = p.to.WriteString(suffix)
	open := byte('{')
	label := func(name, value string) {
		_ = p.to.WriteByte(open)
		open = ','
		_, _ = p.to.WriteString(name)
		_, _ = p.to.WriteString(`="`)
		p.escape(value, true)
		_ = p.to.WriteByte('"')
	}
	for i, name := range labels {
		if values[i] != "" {
			label(name, values[i])
		}
	}
	if bound != "" {
		label("le", bound)
	}
	if open == ',' {
		_ = p.to.WriteByte('}')
	}
	_ = p.to.WriteByte(' ')
	p.scratch = appendValue(p.scratch[:0], value)
	_, _ = p.to.Write(p.scratch)
	_ = p.to.WriteByte('\n')
}

func appendValue(to []byte, value float64) []byte {
	switch {
	case math.IsInf(value, 1):
		return append(to, "+Inf"...)
	case math.IsInf(value, -1):
		return append(to, "-Inf"...)
	case value == math.Trunc(value) && math.Abs(value) < 1<<53:
		return strconv.AppendInt(to, int64(value), 10)
	}
	return strconv.AppendFloat(to, value, 'g', -1, 64)
}

// longest bounds the value of a label, in bytes: names come from hosts and guests as well.
const longest = 256

// escape writes a text so that it stays one text whatever is in it. What no text should have (a control character, bytes that are not
// UTF-8) becomes the replacement character. Quotes are escaped in labels only, as the format wants.
func (p *Page) escape(text string, quoted bool) {
	if plain(text) && len(text) <= longest {
		_, _ = p.to.WriteString(text)
		return
	}
	for at, r := range text {
		switch {
		case quoted && at >= longest:
			return
		case r == '\\':
			_, _ = p.to.WriteString(`\\`)
		case r == '\n':
			_, _ = p.to.WriteString(`\n`)
		case r == '"' && quoted:
			_, _ = p.to.WriteString(`\"`)
		case r < ' ' || r == 0x7f:
			_, _ = p.to.WriteRune(utf8.RuneError)
		default:
			_, _ = p.to.WriteRune(r)
		}
	}
}

func plain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r >= 0x7f })
}
