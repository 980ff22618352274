package console

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// lineView is a line of the picture of a cluster: each node is a column of it, in the order of their names.
type lineView struct {
	First, Last      string // names
	Nodes            int
	Troubled, Silent int    // of them: with problems, and without figures
	Address          string // of the page that lists them

	// What to draw, as SVG has it, for all nodes at once. The browser has a few things to draw in a line, however many nodes there are.
	Physical, Promised, Used, Trouble string
}

// nodesInLine is how many columns a line has at most. It is what a page of the list of nodes has, too.
const nodesInLine = 100

// A column is this wide and high. Parts of it have whole heights: a node that uses a little more looks as before, and is not sent again.
const (
	columnWidth  = 10
	columnHeight = 20
)

// LineWidth and LineHeight are of the picture of a line. Below the columns is what marks those with problems.
func (lineView) LineWidth() int  { return nodesInLine * columnWidth }
func (lineView) LineHeight() int { return columnHeight + 4 }

// drawNodes makes the lines of the nodes of a cluster.
func drawNodes(cluster string, nodes []nodeView) []lineView {
	byName := slices.Clone(nodes)
	slices.SortFunc(byName, func(a, b nodeView) int { return strings.Compare(a.GetName(), b.GetName()) })
	var lines []lineView
	for some := range slices.Chunk(byName, nodesInLine) {
		lines = append(lines, drawLine(cluster, some))
	}
	return lines
}

func drawLine(cluster string, nodes []nodeView) lineView {
	line := lineView{First: nodes[0].GetName(), Last: nodes[len(nodes)-1].GetName(), Nodes: len(nodes)}
	line.Address = nodesAddress(cluster, "from", line.First)
	var physical, promised, used, trouble strings.Builder
	for i, node := range nodes {
		at := i*columnWidth + columnWidth/2
		column := func(into *strings.Builder, at int, part int64) {
			if high := int(math.Round(columnHeight * node.Bar.share(part))); high > 0 {
				fmt.Fprintf(into, "M%d %dv-%d", at, columnHeight, high)
			}
		}
		column(&physical, at, node.Bar.Physical)
		column(&promised, at-columnWidth/5, node.Bar.Promised)
		column(&used, at+columnWidth/5, node.Bar.Used)
		if len(node.Trouble) > 0 {
			line.Troubled++
			fmt.Fprintf(&trouble, "M%d %dv4", at, columnHeight)
		}
		if !node.Bar.KnownUsed || !node.Bar.KnownPromised {
			line.Silent++
		}
	}
	line.Physical, line.Promised, line.Used, line.Trouble = physical.String(), promised.String(), used.String(), trouble.String()
	return line
}

// Says is what the picture shows, in words.
func (l lineView) Says() string {
	said := counted(l.Nodes, "node")
	if l.Troubled > 0 {
		said += fmt.Sprintf(", %d with problems", l.Troubled)
	}
	if l.Silent > 0 {
		said += fmt.Sprintf(", %d of unknown use", l.Silent)
	}
	return said
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
