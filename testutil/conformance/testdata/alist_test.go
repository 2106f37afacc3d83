package db

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/alist-org/alist/v3/internal/conf"
	"github.com/alist-org/alist/v3/internal/model"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// TestMain opens the database as the program does. The second start finds its tables, and migrates them again.
func TestMain(m *testing.M) {
	conf.Conf = conf.DefaultConfig()
	conf.Conf.Database.Type = "mysql"
	for range 2 {
		d, err := gorm.Open(mysql.Open("root@tcp(127.0.0.1:3306)/conformance?charset=utf8mb4&parseTime=True&loc=Local"),
			&gorm.Config{NamingStrategy: schema.NamingStrategy{TablePrefix: conf.Conf.Database.TablePrefix}})
		if err != nil {
			panic(err)
		}
		Init(d)
	}
	os.Exit(m.Run())
}

// insert stores 20 rows from each of four goroutines, and returns their names by key.
func insert(t *testing.T, store func(name string) (uint, error)) map[uint]string {
	t.Helper()
	names := map[uint]string{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			for j := range 20 {
				name := fmt.Sprintf("/%d/%d", i, j)
				id, err := store(name)
				mu.Lock()
				if other, taken := names[id]; err != nil || taken || id == 0 {
					t.Errorf("id of %s = %d, %v, want an id other than 0 that no other row has (%s)", name, id, err, other)
				}
				names[id] = name
				mu.Unlock()
			}
		}()
	}
	all.Wait()
	return names
}

func TestUsers(t *testing.T) {
	for _, user := range []*model.User{{Username: "admin", Role: model.ADMIN}, {Username: "guest", Role: model.GUEST, Disabled: true}} {
		if err := CreateUser(user); err != nil {
			t.Fatal(err)
		}
		if found, err := GetUserByRole(user.Role); err != nil || found.ID != user.ID || user.ID == 0 {
			t.Errorf("GetUserByRole(%d) = %+v, %v, want the id %d", user.Role, found, err, user.ID)
		}
	}
	for id, name := range insert(t, func(name string) (uint, error) {
		user := &model.User{Username: name, BasePath: name}
		err := CreateUser(user)
		return user.ID, err
	}) {
		if user, err := GetUserById(id); err != nil || user.Username != name {
			t.Errorf("GetUserById(%d) = %+v, %v, want the name %s", id, user, err, name)
		}
	}
	if _, n, err := GetUsers(1, 10); err != nil || n != 82 {
		t.Errorf("GetUsers() returned %d users, %v, want 82", n, err)
	}
	if err := CreateUser(&model.User{Username: "guest"}); err == nil {
		t.Error("CreateUser(guest) succeeded twice, want an error")
	}
}

func TestStorages(t *testing.T) {
	for id, name := range insert(t, func(name string) (uint, error) {
		storage := &model.Storage{MountPath: name, Driver: "Local", Modified: time.Now()}
		err := CreateStorage(storage)
		return storage.ID, err
	}) {
		storage, err := GetStorageById(id)
		if err != nil || storage.MountPath != name {
			t.Fatalf("GetStorageById(%d) = %+v, %v, want the path %s", id, storage, err, name)
		}
		storage.Remark = "seen"
		if err := UpdateStorage(storage); err != nil {
			t.Error(err)
		}
		if found, err := GetStorageByMountPath(name); err != nil || found.ID != id || found.Remark != "seen" {
			t.Errorf("GetStorageByMountPath(%s) = %+v, %v, want the id %d and the remark seen", name, found, err, id)
		}
	}
	all, n, err := GetStorages(1, 100)
	if err != nil || n != 80 || len(all) != 80 {
		t.Errorf("GetStorages() returned %d of %d storages, %v, want 80", len(all), n, err)
	}
	if err := DeleteStorageById(all[0].ID); err != nil {
		t.Error(err)
	}
}

func TestMetas(t *testing.T) {
	for id, path := range insert(t, func(path string) (uint, error) {
		meta := &model.Meta{Path: path}
		err := CreateMeta(meta)
		return meta.ID, err
	}) {
		if meta, err := GetMetaByPath(path); err != nil || meta.ID != id {
			t.Errorf("GetMetaByPath(%s) = %+v, %v, want the id %d", path, meta, err, id)
		}
	}
}

// TestOthers: tables with keys that are texts, or without a key.
func TestOthers(t *testing.T) {
	if err := SaveSettingItems([]model.SettingItem{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}}); err != nil {
		t.Fatal(err)
	}
	if err := SaveSettingItem(&model.SettingItem{Key: "a", Value: "3"}); err != nil {
		t.Fatal(err)
	}
	if item, err := GetSettingItemByKey("a"); err != nil || item.Value != "3" {
		t.Errorf("GetSettingItemByKey(a) = %+v, %v, want the value 3", item, err)
	}
	nodes := []model.SearchNode{{Parent: "/", Name: "a"}, {Parent: "/", Name: "b"}, {Parent: "/a", Name: "c"}}
	if err := BatchCreateSearchNodes(&nodes); err != nil {
		t.Fatal(err)
	}
	if found, err := GetSearchNodesByParent("/"); err != nil || len(found) != 2 {
		t.Errorf("GetSearchNodesByParent(/) = %+v, %v, want two nodes", found, err)
	}
}
