package script

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// documentOf is the size of the document of each VM of a large estate, in bytes.
const documentOf = 15 << 10

// largeEstate NAME BYTES PARTS: NAME.yaml is an estate of exactly so many bytes, and NAME-1.yaml and so on have the same in parts.
func largeEstate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: estate NAME BYTES PARTS")
	}
	size, err := strconv.Atoi(args[1])
	ts.Check(err)
	count, err := strconv.Atoi(args[2])
	ts.Check(err)
	const head = "format: berth/estate/v1\nvms:\n"
	parts, whole := make([]strings.Builder, count), strings.Builder{}
	whole.WriteString(head)
	for n := 0; ; n++ {
		vm := fmt.Sprintf("  - name: vm-%d\n    xml: \"<domain type='kvm'><memory unit='GiB'>1</memory><vcpu>1</vcpu><!-- %s --></domain>\"\n",
			n, strings.Repeat("what a guest is described with, ", documentOf/32))
		if whole.Len()+len(vm) > size {
			break
		}
		whole.WriteString(vm)
		parts[n%count].WriteString(vm)
	}
	if left := size - whole.Len(); left > 0 {
		whole.WriteString("#" + strings.Repeat("-", left-1))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".yaml"), []byte(whole.String()), 0o600))
	for i := range parts {
		ts.Check(os.WriteFile(ts.MkAbs(fmt.Sprintf("%s-%d.yaml", args[0], i+1)), []byte(head+parts[i].String()), 0o600))
	}
}
