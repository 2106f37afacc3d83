package catalog

import (
	"slices"
	"testing"
)

func TestCounts(t *testing.T) {
	for text, want := range map[string]bool{
		"return row_count()":                                                                            true,
		"return (select found_rows())":                                                                  true,
		"insert into log values (row_count())":                                                          true,
		"begin set @n = sql%rowcount; end":                                                              true,
		"return @@session.autocommit":                                                                   true,
		"begin update s set a = 1; return @@in_transaction; end":                                        true,
		"begin set @x = 1; if found_rows() > 1 then delete from s; end":                                 true,
		"begin update s set a = 1; return row_count(); end":                                             false,
		"begin select a into @x from s; set @n = found_rows(); end":                                     false,
		"begin call p(1); set @n = row_count(); end":                                                    false,
		"begin get diagnostics @n = row_count; insert into log values (1); end":                         true,
		"begin set @n = replace('a', 'b', 'c'); return row_count(); end":                                true,
		"begin set @n = sql % rowcount; end":                                                            true,
		"begin set @n = (select 1 from s); return row_count(); end":                                     true,
		"begin update s set a = 1; return found_rows(); end":                                            true,
		"begin update s set a = 1; select a into @x from s; set @n = found_rows(); end":                 false,
		"begin set @n = case when @x then replace('a', 'b', 'c') end; return row_count(); end":          true,
		"begin update s set a = 1;return row_count(); end":                                              false,
		"begin update s set a = 1; set @n = row_count(), @m = found_rows(); end":                        true,
		"begin if exists (select 1 from s) then return 5; end if; return row_count(); end":              true,
		"update s set b = 'x' where a = 99; if row_count() = 0 then insert into log values (1); end if": false,
		"return `found_rows` ()":                                                                        true,
		"update stats set row_count = row_count + 1":                                                    false,
		"begin declare rowcount int; return rowcount + my_row_count(1); end":                            false,
		"begin if @@session.sql_log_bin then set @autocommit = 1; end if; end":                          false,
		"select `f`(`s`.`a`) as `l`,count(0) as `rows` from `shop`.`s`":                                 false,
	} {
		if got := Counts(text); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestCalls(t *testing.T) {
	got := Calls("INSERT INTO t (a) SELECT f(a), `g` (1), shop.h(2), `my fn`(3), p FROM `v`; CALL q; call `shop`.`r`")
	for _, name := range []string{"f", "g", "h", "shop", "q", "r", "my fn"} {
		if !slices.Contains(got, name) {
			t.Errorf("%s is not in %q", name, got)
		}
	}
	if slices.Contains(got, "p") || slices.Contains(got, "v") {
		t.Errorf("%q", got)
	}
}
