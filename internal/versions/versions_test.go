package versions

import "testing"

func TestWindowFunctionsDependOnVersion(t *testing.T) {
	for version, want := range map[int]bool{50651: false, 50744: false, 80000: true, 80033: true, 90704: true} {
		if got := HasWindowFunctions(false, version); got != want {
			t.Errorf("%s: %v", Format(false, version), got)
		}
	}
	for version, want := range map[int]bool{100123: false, 100200: true, 100211: true, 110806: true} {
		if got := HasWindowFunctions(true, version); got != want {
			t.Errorf("%s: %v", Format(true, version), got)
		}
	}
}

func TestNullColumnsBugDependsOnVersion(t *testing.T) {
	for version, want := range map[int]string{
		100527: "", 100528: "10.5.29", 100529: "", 100621: "10.6.22", 101110: "", 101111: "10.11.12", 101112: "",
		110404: "", 110405: "11.4.6", 110406: "", 110702: "11.8.2", 110802: "",
	} {
		if got, has := HasNullColumnsBug(true, version); got != want || has != (want != "") {
			t.Errorf("%s: %q, %v", Format(true, version), got, has)
		}
		if _, has := HasNullColumnsBug(false, version); has {
			t.Errorf("%s has a bug of MariaDB", Format(false, version))
		}
	}
	if name := Format(true, 110405); name != "MariaDB 11.4.5" {
		t.Error(name)
	}
}
