package main

import (
	"context"
	"errors"
	"strings"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/migrate"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
)

// steps say to people what a step does.
var steps = map[migrate.Step]string{
	migrate.Widen: `makes the key BIGINT. The server copies the table, and nobody writes meanwhile; a large one is better changed by
  an online schema-change tool. -keep-type leaves it out.`,
	migrate.Switch: `creates a trigger that refuses rows without a key, then puts leaf_alloc's row above the highest key of all shards.
  Writers that do not use mysql-leaf fail from then on, with error 1644, until they are deployed with it: have that ready. Programs with
  mysql-leaf that ran before a -back hold ids from then: start them anew.
  -back takes the trigger away again.`,
	migrate.Drop: `takes AUTO_INCREMENT away; MySQL copies the table, and nobody writes meanwhile.
  Before it, deploy all writers with mysql-leaf and see them write. Until then the way back is to stop these and run -back.`,
	migrate.Unguard: `drops the trigger. A forgotten writer then gets error 1364. Until then -back gives AUTO_INCREMENT back.`,
	migrate.Done: `Nothing is left to do in the database: leaf_alloc's row is above all keys. Where Java Leaf gives this tag's ids,
  it and mysql-leaf may go on side by side; deploy writers with mysql-leaf one by one, and back in the same way.`,
}

func runMigrate(ctx context.Context, s *screen.Screen, args []string) (int, error) {
	f := newFlags(s, "migrate").onDatabases().withJSON()
	do := f.String("do", "", "run this `step`, which has to be the next one: widen, switch, drop, unguard")
	back := f.Bool("back", false, "undo the last step, as long as the trigger stands")
	keep := f.Bool("keep-type", false, "leave the key's type as it is")
	if err := f.parse(args, true); err != nil {
		return unclear, err
	}
	if f.NArg() == 0 {
		return unclear, errors.New("leafsql: migrate: no table is named; leafsql migrate -dsn DSN orders says what is to be done for orders")
	}
	if *back && *do != "" {
		return unclear, errors.New("leafsql: migrate: -do and -back at once; take one")
	}
	set, err := databases.Open(ctx, f.dsn, f.shards)
	if err != nil {
		return unclear, err
	}
	defer set.Close()
	m := &migrate.Migration{Set: set, Tables: f.Args(), KeepType: *keep}
	if err := m.Configure(); err != nil {
		return unclear, err
	}
	tags, err := m.Look(ctx)
	if err != nil {
		return unclear, err
	}
	for i, tag := range tags {
		say := func(st migrate.Statement) {
			if !f.json {
				s.Printf("%s: %s;\n", st.Server, strings.Join(st.SQL, "; "))
			}
		}
		doing := s.Progress(func() string { return "running on the tables of " + tag.Name })
		switch {
		case *back:
			tags[i], err = m.Back(ctx, tag, say)
		case *do != "" && tag.Past(migrate.Step(*do)):
			err = tag.Err()
		case *do != "":
			tags[i], err = m.Do(ctx, tag, migrate.Step(*do), say)
		default:
			err = tag.Err()
		}
		doing()
		if err != nil {
			return unclear, err
		}
	}
	status, err := printMigration(s, tags, f.json)
	if *back || *do != "" {
		status = fine // what was asked for is done
	}
	return status, err
}

func printMigration(s *screen.Screen, tags []*migrate.Tag, asJSON bool) (int, error) {
	type standing struct {
		Tag    string              `json:"tag"`
		Tables []string            `json:"tables"`
		Next   migrate.Step        `json:"next"` // "": none is left
		SQL    []migrate.Statement `json:"sql"`
	}
	status := fine
	all := []standing{}
	for _, tag := range tags {
		st := standing{tag.Name, nil, tag.Next(), tag.Statements(tag.Next())}
		for _, t := range tag.Tables {
			st.Tables = append(st.Tables, t.Where())
		}
		all = append(all, st)
		if st.Next != migrate.Done {
			status = mend
		}
	}
	if asJSON {
		return status, s.JSON(all)
	}
	for _, st := range all {
		if st.Next == migrate.Done {
			s.Printf("\n%s: done. %s\n", screen.Plain(st.Tag), steps[st.Next])
			continue
		}
		s.Printf("\n%s: next is -do %s, which %s\n", screen.Plain(st.Tag), st.Next, steps[st.Next])
		for _, sql := range st.SQL {
			s.Printf("    %s: %s;\n", sql.Server, strings.Join(sql.SQL, "; "))
		}
	}
	s.Printf("\nThe order: -do widen, -do switch, deploy writers with mysql-leaf, -do drop, -do unguard.\n")
	return status, nil
}
