package model

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/songquanpeng/one-api/common"
	"github.com/songquanpeng/one-api/common/config"
)

func TestMain(m *testing.M) {
	os.Setenv("SQL_DSN", "root@tcp(127.0.0.1:3306)/conformance?charset=utf8mb4&parseTime=true")
	common.RedisEnabled = false
	config.InitialRootToken, config.QuotaForNewUser, config.QuotaForInviter = "a-first-token", 100, 10
	for range 2 { // the second start finds its tables, and migrates them again
		InitDB()
		InitLogDB()
		if err := CreateRootAccountIfNeed(); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// rows returns the number of rows of a table, the number of different keys, and
// whether 0 is a key.
func rows(t *testing.T, table string) string {
	t.Helper()
	var all, keys, zero int
	row := DB.Raw("SELECT COUNT(*), COUNT(DISTINCT id), COALESCE(SUM(id = 0), 0) FROM " + table).Row()
	if err := row.Scan(&all, &keys, &zero); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d rows, %d keys, %d of them 0", all, keys, zero)
}

func TestRoot(t *testing.T) {
	token, err := ValidateUserToken("a-first-token")
	if err != nil {
		t.Fatal(err)
	}
	root, err := GetUserById(token.UserId, false)
	if err != nil || root.Username != "root" || token.Id != 1 {
		t.Errorf("user of token %d = %+v, %v, want root and the token 1", token.Id, root, err)
	}
}

func TestUsers(t *testing.T) {
	root := &User{Username: "root"}
	if err := root.FillUserByUsername(); err != nil {
		t.Fatal(err)
	}
	before := root.Quota
	var users sync.Map
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 20 {
				user := &User{Username: fmt.Sprint("user", i, "-", j), Password: "secret-secret", Email: fmt.Sprint(i, "-", j, "@example.com")}
				if err := user.Insert(context.Background(), root.Id); err != nil {
					t.Error(err)
					return
				}
				if other, taken := users.LoadOrStore(user.Id, user.Username); taken || user.Id == 0 {
					t.Errorf("id of %s = %d, want an id other than 0 that no other user has (%v)", user.Username, user.Id, other)
				}
			}
		})
	}
	all.Wait()
	users.Range(func(id, name any) bool {
		user, err := GetUserById(id.(int), true)
		if err != nil || user.Username != name {
			t.Errorf("GetUserById(%d) = %+v, %v, want the name %s", id, user, err, name)
			return true
		}
		if tokens, err := GetAllUserTokens(user.Id, 0, 10, ""); err != nil || len(tokens) != 1 || tokens[0].Name != "default" {
			t.Errorf("tokens of user %d = %v, %v, want the token default", id, tokens, err)
		}
		if logs, err := GetUserLogs(user.Id, LogTypeUnknown, 0, 0, "", "", 0, 10); err != nil || len(logs) != 1 {
			t.Errorf("logs of user %d = %v, %v, want one", id, logs, err)
		}
		return true
	})
	if err := root.FillUserById(); err != nil || root.Quota != before+800 {
		t.Errorf("quota for 80 invited users = %d, %v, want 800", root.Quota-before, err)
	}
	for table, want := range map[string]string{
		"users": "81 rows, 81 keys, 0 of them 0", "tokens": "81 rows, 81 keys, 0 of them 0", "logs": "160 rows, 160 keys, 0 of them 0",
	} {
		if got := rows(t, table); got != want {
			t.Errorf("%s: %s, want %s", table, got, want)
		}
	}
}

func TestChannels(t *testing.T) {
	var channels []Channel
	for i := range 30 {
		channels = append(channels, Channel{Name: fmt.Sprint("channel", i), Key: "key", Models: fmt.Sprintf("model-%d,every", i), Group: "default"})
	}
	if err := BatchInsertChannels(channels); err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		channel, err := GetRandomSatisfiedChannel("default", fmt.Sprintf("model-%d", i), false)
		if err != nil || channel.Name != fmt.Sprint("channel", i) {
			t.Errorf("channel of model %d = %+v, %v, want channel%[1]d", i, channel, err)
		}
	}
	if got := rows(t, "channels"); got != "30 rows, 30 keys, 0 of them 0" {
		t.Errorf("rows of channels: %s, want 30 rows, 30 keys, 0 of them 0", got)
	}
	one := &Channel{Name: "last", Models: "last", Group: "default"}
	if err := one.Insert(); err != nil {
		t.Fatal(err)
	}
	if latest, err := GetAllChannels(0, 1, ""); err != nil || len(latest) != 1 || latest[0].Name != "last" {
		t.Errorf("latest channel = %+v, %v, want one with the name last", latest, err)
	}
	if err := one.Delete(); err != nil {
		t.Fatal(err)
	}
	if channel, err := GetRandomSatisfiedChannel("default", "last", false); err == nil {
		t.Errorf("channel of the deleted channel's model = %+v, want an error", channel)
	}
}

func TestRedemptions(t *testing.T) {
	user := &User{Username: "root"}
	if err := user.FillUserByUsername(); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		code := &Redemption{UserId: user.Id, Key: fmt.Sprint("code", i), Quota: int64(i + 1)}
		if err := code.Insert(); err != nil {
			t.Fatal(err)
		}
		if quota, err := Redeem(context.Background(), code.Key, user.Id); err != nil || quota != int64(i+1) {
			t.Errorf("Redeem() of code %d = %d, %v, want %d", i, quota, err, i+1)
		}
		if used, err := GetRedemptionById(code.Id); err != nil || used.Key != code.Key || used.Status != RedemptionCodeStatusUsed {
			t.Errorf("code %d = %+v, %v, want the key %s, used", i, used, err, code.Key)
		}
	}
}
