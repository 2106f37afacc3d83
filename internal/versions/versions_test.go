package versions

import "testing"

func TestWindowFunctionsDependOnVersion(t *testing.T) {
	for version, want := range map[int]bool{50651: false, 50744: false, 80000: true, 80033: true, 90704: true} {
		if got := HasWindowFunctions(false, version); got != want {
			t.Errorf("HasWindowFunctions(%s) = %v, want %v", Format(false, version), got, want)
		}
	}
	for version, want := range map[int]bool{100123: false, 100200: true, 100211: true, 110806: true} {
		if got := HasWindowFunctions(true, version); got != want {
			t.Errorf("HasWindowFunctions(%s) = %v, want %v", Format(true, version), got, want)
		}
	}
}

func TestNullColumnsBugDependsOnVersion(t *testing.T) {
	for version, want := range map[int]string{
		100527: "", 100528: "10.5.29", 100529: "", 100621: "10.6.22", 101110: "", 101111: "10.11.12", 101112: "",
		110404: "", 110405: "11.4.6", 110406: "", 110702: "11.8.2", 110802: "",
	} {
		if got, has := HasNullColumnsBug(true, version); got != want || has != (want != "") {
			t.Errorf("HasNullColumnsBug(%s) = %q, %v; want %q", Format(true, version), got, has, want)
		}
		if _, has := HasNullColumnsBug(false, version); has {
			t.Errorf("HasNullColumnsBug(%s) = true, want false", Format(false, version))
		}
	}
	if name := Format(true, 110405); name != "MariaDB 11.4.5" {
		t.Errorf("Format() = %q, want MariaDB 11.4.5", name)
	}
}
