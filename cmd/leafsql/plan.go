package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/migrate"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
	"github.com/leafsql/leafsql/internal/versions"
)

// stepTexts contains two descriptions of each step: of its effect, and of a table on which it is done already.
var stepTexts = map[migrate.Step]struct{ does, half string }{
	migrate.Widen: {`makes the key BIGINT. The server copies the table and blocks writes meanwhile; change a large table with an online schema-change tool. -keep-type leaves it out.`, "has a BIGINT key"},
	migrate.Switch: {`creates a trigger that refuses rows without a key, then puts leaf_alloc's row above the highest key of all shards.
  Writers that do not use mysql-leaf fail from then on, with error 1644, until they are deployed with it: prepare that before. Programs with mysql-leaf that ran before a -back hold ids from before: restart them.
  -back drops the trigger again.`, "refuses rows without a key"},
	migrate.Drop: {`removes AUTO_INCREMENT; MySQL copies the table and blocks writes meanwhile.
  Before it, deploy all writers with mysql-leaf and check that they write. Until then, stop these writers and run -back to undo the step.`, "has no AUTO_INCREMENT"},
	migrate.Unguard: {`drops the trigger. A forgotten writer then gets error 1364. Until then -back gives AUTO_INCREMENT back.`, "has no trigger"},
}

// A plan shows the state of a migration.
type plan struct {
	screen  *screen.Screen
	json    bool
	guarded map[string]bool // by tag: the guard, a trigger that refuses rows without a key, existed before this run, so the tables had AUTO_INCREMENT
}

// A tagStatus is the state of the tables of one tag.
type tagStatus struct {
	Tag      string              `json:"tag"`
	Tables   []string            `json:"tables"`
	Next     migrate.Step        `json:"next"`                // "": no step is left
	HalfDone []string            `json:"half_done,omitempty"` // tables on which the next step is done, if it is done only on some tables
	SQL      []migrate.Statement `json:"sql"`
	Findings []check.Finding     `json:"findings,omitempty"` // while there are any, the steps after widen are refused
	Back     []migrate.Statement `json:"back,omitempty"`     // for a completed migration: the statements that add AUTO_INCREMENT again
}

// printStatement shows a statement before it is executed.
func (p *plan) printStatement(st migrate.Statement) {
	if !p.json {
		printSQLOn(p.screen, 0, st.Server, st.SQL...)
	}
}

// runStep shows progress while a step runs.
func (p *plan) runStep(tag *migrate.Tag, step func() (*migrate.Tag, error)) (*migrate.Tag, error) {
	defer p.screen.Progress(func() string { return p.screen.Texts.Sprintf("running on the tables of %s", tag.Name) })()
	return step()
}

// print shows the state of the tables and the next steps.
func (p *plan) print(tags []*migrate.Tag) (status int, err error) {
	all := lo.Map(tags, func(t *migrate.Tag, _ int) tagStatus { return newTagStatus(t) })
	if slices.ContainsFunc(all, func(st tagStatus) bool { return st.Next != migrate.Done }) {
		status = exitProblems
	}
	if p.json {
		return status, p.screen.JSON(all)
	}
	shown := make(map[string]bool) // the statement that creates leaf_alloc is the same for all tags
	for _, st := range all {
		name := screen.ReplaceControl(st.Tag)
		if st.Next == migrate.Done {
			p.screen.Printf("\n%s: done. leaf_alloc's row is above all keys, and the database needs no further change.\n", name)
			continue
		}
		p.screen.Printf("\n%s: next is -do %s\n", name, st.Next)
		if len(st.HalfDone) > 0 {
			p.screen.Printf("  The step is incomplete, or -back was interrupted. It already %s on: %s.\n", p.screen.Texts.Text(stepTexts[st.Next].half), strings.Join(st.HalfDone, ", "))
		}
		for _, sql := range st.SQL {
			if key := fmt.Sprint(sql.Server, sql.SQL); !shown[key] {
				shown[key] = true
				printSQLOn(p.screen, 4, sql.Server, sql.SQL...)
			}
		}
	}
	for _, step := range migrate.Steps {
		if slices.ContainsFunc(all, func(st tagStatus) bool { return st.Next == step }) {
			p.screen.Printf("\n%s %s\n", step, p.screen.Texts.Text(stepTexts[step].does))
		}
	}
	p.printRefusedSelects(lo.Filter(tags, func(_ *migrate.Tag, i int) bool { return all[i].Next != migrate.Done }))
	p.printObstacles(all)
	p.printWayBack(all)
	if status == exitProblems {
		p.screen.Printf("\nThe order: -do widen, -do switch, deploy writers with mysql-leaf, -do drop, -do unguard.\n")
	}
	return status, nil
}

// printRefusedSelects shows the statements that are refused as long as the guard, a trigger, exists. It does so for
// servers with the bug MDEV-36026.
func (p *plan) printRefusedSelects(tags []*migrate.Tag) {
	var shown []string
	for _, tag := range tags {
		for _, t := range tag.Tables {
			server := t.Shard.Inspection
			name := versions.Format(server.MariaDB, server.Version)
			if mended, has := versions.HasNullColumnsBug(server.MariaDB, server.Version); has && !slices.Contains(shown, name) {
				shown = append(shown, name)
				p.screen.Printf(`
%s replaces selected keys by NULL if a table has a trigger BEFORE INSERT (MDEV-36026), and switch creates such a trigger.
While it exists, LOAD DATA into the tables is refused, and from drop on so is INSERT … SELECT. Upgrade the server to %s before switch, or read the rows and insert them with VALUES until unguard.
`, name, mended)
			}
		}
	}
}

func newTagStatus(t *migrate.Tag) tagStatus {
	st := tagStatus{Tag: t.Name, Next: t.Next(), SQL: t.Statements(t.Next()), Findings: t.Obstacles}
	for _, o := range t.Tables {
		st.Tables = append(st.Tables, o.Location())
	}
	for _, o := range t.HalfDone() {
		st.HalfDone = append(st.HalfDone, o.Location())
	}
	if st.Next == migrate.Done {
		st.Back = t.UndoStatements()
	}
	return st
}

// refuse shows why a step was not started on any table.
func (p *plan) refuse(tags []*migrate.Tag, step migrate.Step) (status int, err error) {
	all := lo.FilterMap(tags, func(t *migrate.Tag, _ int) (tagStatus, bool) { return newTagStatus(t), t.IsBlocked(step) })
	if p.json {
		return exitProblems, p.screen.JSON(all)
	}
	names := lo.Map(all, func(st tagStatus, _ int) string { return screen.ReplaceControl(st.Tag) })
	p.screen.Printf("%s is refused for %s, and nothing was changed.\n", step, strings.Join(names, ", "))
	p.printObstacles(all)
	return exitProblems, nil
}

// printObstacles shows the findings that cause the refusals, each finding once.
func (p *plan) printObstacles(all []tagStatus) {
	findings := lo.UniqBy(lo.FlatMap(all, func(st tagStatus, _ int) []check.Finding { return st.Findings }), func(f check.Finding) [4]string {
		return [4]string{f.Code, f.Server, f.Table, f.Message}
	})
	if len(findings) > 0 {
		p.screen.Printf("\nswitch, drop and unguard are refused as long as leafsql check reports programs that they would break:\n\n")
		printFindings(p.screen, findings)
	}
	if slices.ContainsFunc(findings, migrate.IsProgramFinding) {
		p.screen.Printf(`
A trigger, a routine or an event never gets keys from mysql-leaf. A table that it has to write keeps AUTO_INCREMENT, and !table in leafTables leaves it out. If it no longer runs, or always writes a key from leafsql, use -ignore-programs.
`)
	}
}

// printWayBack shows the statements that undo the completed migrations.
func (p *plan) printWayBack(all []tagStatus) {
	over := func(guarded bool) (over []tagStatus) {
		return lo.Filter(all, func(st tagStatus, _ int) bool { return st.Next == migrate.Done && p.guarded[st.Tag] == guarded })
	}
	way := func(when string, of []tagStatus) {
		p.screen.Printf("\n%s: stop all writers, run this command again for the current values of max_id, run its SQL on every shard, and start writers without leafsql.\n", p.screen.Texts.Text(when))
		for _, st := range of {
			for _, sql := range st.Back {
				printSQLOn(p.screen, 4, sql.Server, sql.SQL...)
			}
		}
	}
	if came := over(true); len(came) > 0 {
		way("The way back", came)
	}
	if unknown := over(false); len(unknown) > 0 {
		way("The way back, if the keys were AUTO_INCREMENT's before", unknown)
		p.screen.Printf("If Java Leaf issues the ids, Java Leaf and mysql-leaf can run at the same time: deploy writers with mysql-leaf one by one, and undo it the same way.\n")
	}
}
