package arch

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// Law 8: a rule is one file and one line in all.go. Help, configuration, explanations and metrics read that list, so a
// rule that is not in it does not exist, and one in a file of another name is not found.
func TestEveryRuleIsOneFileAndOneLine(t *testing.T) {
	var folders int
	for _, p := range all(t) {
		at := slices.IndexFunc(p.Files, func(f file) bool { return filepath.Base(f.Path) == "all.go" })
		if at < 0 {
			continue
		}
		folders++
		kind, listed := ruleList(p.Files[at])
		if kind == "" {
			t.Errorf("%s has no `var all = []Rule{...}`", p.Files[at].Path)
			continue
		}
		var declared []string
		for _, f := range p.Files {
			rules := rulesIn(f, kind)
			if len(rules) == 0 {
				continue
			}
			declared = append(declared, rules...)
			if name := strings.TrimSuffix(filepath.Base(f.Path), ".go"); len(rules) > 1 || snake(rules[0]) != name {
				t.Errorf("%s declares %v: want one rule, named like the file", f.Path, rules)
			}
		}
		slices.Sort(declared)
		slices.Sort(listed)
		if !slices.Equal(declared, listed) {
			t.Errorf("%s lists %v, the files declare %v", p.Files[at].Path, listed, declared)
		}
	}
	if folders == 0 {
		t.Error("no folder of rules found: this test looks at the wrong place")
	}
}

// proofs are the files that show what a rule does, by its folder, and what stands in one of them about the rule. NAME is the
// rule's name.
var proofs = map[string]struct{ files, says string }{
	"coordinator/placement/constraint": {"coordinator/placement/testdata/golden/*.txt", `refused by ([\w-]+, )*NAME\b`},
	"coordinator/placement/weigher":    {"coordinator/placement/testdata/golden/*.txt", `\bNAME\b`},
	"coordinator/placement/selector":   {"coordinator/placement/testdata/golden/*.txt", `\bNAME\b`},
	"coordinator/placement/planner":    {"coordinator/placement/testdata/golden/*.txt", `\border NAME:`},
	"coordinator/balance":              {"coordinator/scenario/testdata/cases/NAME*/expected.log", `\bmoves\b`},
}

func TestEveryRuleHasAGolden(t *testing.T) {
	for _, p := range all(t) {
		at := slices.IndexFunc(p.Files, func(f file) bool { return filepath.Base(f.Path) == "all.go" })
		if at < 0 {
			continue
		}
		proof, found := proofs[p.Path]
		if !found {
			t.Errorf("no golden files are named for %s: add them to proofs", p.Path)
			continue
		}
		kind, _ := ruleList(p.Files[at])
		for _, name := range namesOf(p, kind) {
			files := strings.Replace(proof.files, "NAME", name, 1)
			says := regexp.MustCompile(strings.Replace(proof.says, "NAME", regexp.QuoteMeta(name), 1))
			if !slices.ContainsFunc(read(t, files), says.Match) {
				t.Errorf("no file %s shows what %s does", files, name)
			}
		}
	}
}

// read returns the texts of the files that match a pattern.
func read(t *testing.T, pattern string) [][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", pattern))
	if err != nil {
		t.Fatal(err)
	}
	texts := make([][]byte, len(files))
	for i, file := range files {
		if texts[i], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return texts
}

// namesOf are the names of a package's rules, as help and configuration know them.
func namesOf(p pkg, kind string) []string {
	var names []string
	for _, f := range p.Files {
		for _, v := range variables(f) {
			literal, ok := v.value.(*ast.CompositeLit)
			if !ok {
				continue
			}
			if of, ok := literal.Type.(*ast.Ident); !ok || of.Name != kind {
				continue
			}
			name := strings.ReplaceAll(snake(v.name), "_", "-")
			for _, element := range literal.Elts {
				field, ok := element.(*ast.KeyValueExpr)
				if !ok || field.Key.(*ast.Ident).Name != "Name" {
					continue
				}
				if text, ok := field.Value.(*ast.BasicLit); ok {
					name = strings.Trim(text.Value, `"`)
				}
			}
			names = append(names, name)
		}
	}
	return names
}

// ruleList reads `var all = []Kind{a, b}`.
func ruleList(f file) (kind string, listed []string) {
	for _, v := range variables(f) {
		literal, ok := v.value.(*ast.CompositeLit)
		if !ok || v.name != "all" {
			continue
		}
		slice, ok := literal.Type.(*ast.ArrayType)
		if !ok {
			continue
		}
		kind = slice.Elt.(*ast.Ident).Name
		for _, element := range literal.Elts {
			if name, ok := element.(*ast.Ident); ok {
				listed = append(listed, name.Name)
			}
		}
	}
	return kind, listed
}

// rulesIn are the names of f's variables that hold one rule.
func rulesIn(f file, kind string) []string {
	var names []string
	for _, v := range variables(f) {
		literal, ok := v.value.(*ast.CompositeLit)
		if !ok {
			continue
		}
		if name, ok := literal.Type.(*ast.Ident); ok && name.Name == kind {
			names = append(names, v.name)
		}
	}
	return names
}

type variable struct {
	name  string
	value ast.Expr
}

func variables(f file) []variable {
	var found []variable
	for _, declaration := range f.Syntax.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range group.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok {
				for i := range v.Values {
					found = append(found, variable{v.Names[i].Name, v.Values[i]})
				}
			}
		}
	}
	return found
}

// snake turns memoryPhysical into memory_physical, and evenVMCount into even_vm_count.
func snake(name string) string {
	var b strings.Builder
	letters := []rune(name)
	for i, r := range letters {
		begins := i > 0 && (!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1]))
		if unicode.IsUpper(r) && begins {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
