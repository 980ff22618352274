package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// wordsOfOthers are the functions that may look into a text, because it comes from a program that gives no code, or because
// it is only laid out.
var wordsOfOthers = map[string]string{
	"absent":      "Raft itself tells by the words \"not found\" that a store has no such value",
	"explain":     "words of QEMU and the kernel, for which libvirt has no number",
	"remoteAlert": "crypto/tls keeps the type of an alert to itself",
	"whileOpen":   "words of QEMU for a lock that somebody holds, for which libvirt has no number",
	"Reason":      "takes the name of its error, which is shown before, from the text",
}

// Texts are for people: a better sentence must change nothing. Conditions have a kind, errors have a code or a cause.
func TestNoCodeDecidesByWords(t *testing.T) {
	used := map[string]bool{}
	for _, p := range all(t) {
		for _, f := range p.Files {
			if withinAny(p.Path, []string{"integration/...", "packaging/...", "agent/hypervisor/hypervisortest"}) {
				continue // they are tests
			}
			for _, found := range decidesByWords(f.Syntax) {
				if wordsOfOthers[found.function] != "" {
					used[found.function] = true
					continue
				}
				t.Errorf("%s: %s looks into a text that is for people: let a kind or a code tell", positions.Position(found.at), found.function)
			}
			if p.Path == "coordinator/model" {
				continue
			}
			ast.Inspect(f.Syntax, func(n ast.Node) bool {
				outer, _ := n.(*ast.SelectorExpr)
				if outer == nil || outer.Sel.Name != "Kind" {
					return true
				}
				if inner, ok := outer.X.(*ast.SelectorExpr); ok && inner.Sel.Name == "Condition" {
					t.Errorf("%s: Condition.Kind is empty in records of earlier releases: use What or Is", positions.Position(n.Pos()))
				}
				return true
			})
		}
	}
	for function := range wordsOfOthers {
		if !used[function] {
			t.Errorf("%s does not look into a text any more: take it off the list", function)
		}
	}
}

type wordUse struct {
	function string
	at       token.Pos
}

// decidesByWords finds the functions of package strings that look into a text for people, and comparisons of one with a literal.
func decidesByWords(syntax *ast.File) []wordUse {
	var found []wordUse
	for _, declaration := range syntax.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		ast.Inspect(function, func(n ast.Node) bool {
			if looksIntoWords(n) {
				found = append(found, wordUse{function.Name.Name, n.Pos()})
			}
			return true
		})
	}
	return found
}

func looksIntoWords(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		called, ok := n.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		from, ok := called.X.(*ast.Ident)
		looks := []string{
			"HasPrefix", "HasSuffix", "Contains", "ContainsAny", "EqualFold", "Cut", "CutPrefix", "CutSuffix", "Index", "LastIndex", "Count",
			"Split", "SplitN", "Fields",
		}
		return ok && from.Name == "strings" && slices.Contains(looks, called.Sel.Name) && slices.ContainsFunc(n.Args, isText)
	case *ast.BinaryExpr:
		return (n.Op == token.EQL || n.Op == token.NEQ) && (isText(n.X) && isWord(n.Y) || isText(n.Y) && isWord(n.X))
	case *ast.SwitchStmt:
		return n.Tag != nil && isText(n.Tag)
	}
	return false
}

// isText recognises what is written for people: messages, conditions and errors.
func isText(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		of, nested := e.X.(*ast.SelectorExpr)
		return slices.Contains([]string{"Message", "ErrorMessage"}, e.Sel.Name) || nested && of.Sel.Name == "Condition" && e.Sel.Name == "Text"
	case *ast.CallExpr:
		called, ok := e.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		if slices.Contains([]string{"GetMessage", "GetCondition", "GetError", "Error"}, called.Sel.Name) && len(e.Args) == 0 {
			return true
		}
		from, ok := called.X.(*ast.Ident)
		if !ok || from.Name != "fmt" || called.Sel.Name != "Sprint" || len(e.Args) != 1 {
			return false
		}
		argument, ok := e.Args[0].(*ast.Ident)
		return ok && argument.Name == "err"
	}
	return false
}

// isWord is true for a literal that says something: to ask whether there is a text at all is no look into it.
func isWord(e ast.Expr) bool {
	literal, ok := e.(*ast.BasicLit)
	return ok && literal.Kind == token.STRING && len(literal.Value) > len(`""`)
}

// The law itself finds what it is there for.
func TestTheLawAboutWordsFindsThem(t *testing.T) {
	for source, want := range map[string]bool{
		`strings.HasPrefix(vm.Condition.Text, prefix)`: true,
		`strings.Contains(err.Error(), "no space")`:    true,
		`strings.CutPrefix(op.Message, "parked: ")`:    true,
		`vm.GetCondition() == "lost"`:                  true,
		`strings.Cut(fmt.Sprint(err), "tls: ")`:        true,
		`op.Message == ""`:                             false,
		`op.Message == why`:                            false,
		`strings.Contains(vm.Name, "web")`:             false,
		`strings.Join(lines, vm.GetCondition())`:       false,
		`strings.ReplaceAll(err.Error(), "\n", "; ")`:  false,
	} {
		syntax, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc f() { x("+source+") }", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(decidesByWords(syntax)) > 0; got != want {
			t.Errorf("%s: found %t", source, got)
		}
	}
}
