package inventory

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cloudreve/Cloudreve/v4/ent"
	"github.com/cloudreve/Cloudreve/v4/ent/user"
	"github.com/cloudreve/Cloudreve/v4/inventory/types"
	"github.com/cloudreve/Cloudreve/v4/pkg/cache"
	"github.com/cloudreve/Cloudreve/v4/pkg/conf"
	"github.com/cloudreve/Cloudreve/v4/pkg/hashid"
	"github.com/cloudreve/Cloudreve/v4/pkg/logging"
)

const settings = `[Database]
Type = mysql
Host = 127.0.0.1
Port = 3306
User = root
Name = conformance
Charset = utf8mb4
`

// client returns Cloudreve's client, with a database that it has prepared twice.
func client(t *testing.T) *ent.Client {
	t.Helper()
	file := filepath.Join(t.TempDir(), "conf.ini")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	log := logging.NewConsoleLogger(logging.LevelError)
	config, err := conf.NewIniConfigProvider(file, log)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := NewRawEntClient(log, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { raw.Close() })
	for _, version := range []string{"1", "2"} {
		if _, err := InitializeDBClient(log, raw, cache.NewMemoStore("", log), version); err != nil {
			t.Fatal(err)
		}
	}
	return raw
}

func TestInventory(t *testing.T) {
	ctx, db := context.Background(), client(t)
	hasher, err := hashid.New("salt")
	if err != nil {
		t.Fatal(err)
	}
	users, files, shares := NewUserClient(db), NewFileClient(db, conf.MySqlDB, hasher), NewShareClient(db, conf.MySqlDB, hasher)
	// Cloudreve's installer expects the ids 1, 2 and 3.
	for id, name := range map[int]string{1: "Admin", 2: "User", AnonymousGroupID: "Anonymous"} {
		if group, err := db.Group.Get(ctx, id); err != nil || group.Name != name {
			t.Errorf("group %d = %v, %v, want the name %s", id, group, err, name)
		}
	}
	for i := range 6 {
		owner, err := users.Create(ctx, &NewUserArgs{Email: fmt.Sprint(i, "@example.com"), PlainPassword: "secret", Status: user.StatusActive, GroupID: 2})
		if err != nil {
			t.Fatal(err)
		}
		if group, err := owner.QueryGroup().Only(ctx); err != nil || group.ID != map[bool]int{true: 1, false: 2}[i == 0] {
			t.Errorf("group of user %d, with the id %d = %v, %v, want 1 for the first user, otherwise 2", i, owner.ID, group, err)
		}
		root, err := files.CreateFolder(ctx, nil, &CreateFolderParameters{Owner: owner.ID, Name: RootFolderName})
		if err != nil {
			t.Fatal(err)
		}
		if found, err := files.Root(ctx, owner); err != nil || found.ID != root.ID {
			t.Errorf("the root of user %d is %v, %v; want %d", i, found, err, root.ID)
		}
		folder, err := files.CreateFolder(ctx, root, &CreateFolderParameters{Owner: owner.ID, Name: "folder", Metadata: map[string]string{"a": "1", "b": "2", "c": "3"}})
		if err != nil {
			t.Fatal(err)
		}
		// An upsert that finds its row returns the id of that row.
		if again, err := files.CreateFolder(ctx, root, &CreateFolderParameters{Owner: owner.ID, Name: "folder"}); err != nil || again.ID != folder.ID {
			t.Errorf("folder that was created again = %v, %v, want the id %d", again, err, folder.ID)
		}
		for j := range 8 {
			name := fmt.Sprint("file", j)
			file, entity, _, err := files.CreateFile(ctx, folder, &CreateFileParameters{
				FileType: types.FileTypeFile, Name: name, StoragePolicyID: 1, Metadata: map[string]string{"x": name, "y": name},
				EntityParameters: &EntityParameters{EntityType: types.EntityTypeVersion, Source: name, Size: int64(j), Importing: true},
			})
			if err != nil {
				t.Fatal(err)
			}
			found, err := files.GetChildFile(ctx, folder, owner.ID, name, false)
			if err != nil || found.ID != file.ID || found.PrimaryEntity != entity.ID {
				t.Errorf("%s is %v, %v; want the id %d with the entity %d", name, found, err, file.ID, entity.ID)
			}
			if metadata, err := found.QueryMetadata().All(ctx); err != nil || len(metadata) != 2 || metadata[0].Value != name || metadata[1].Value != name {
				t.Errorf("metadata of %s = %v, %v, want its name twice", name, metadata, err)
			}
			share, err := shares.Upsert(ctx, &CreateShareParams{OwnerID: owner.ID, FileID: file.ID})
			if err != nil {
				t.Fatal(err)
			}
			if found, err := shares.GetByHashID(ctx, hashid.EncodeShareID(hasher, share.ID)); err != nil || found.ID != share.ID {
				t.Errorf("share of %s = %v, %v, want the id %d", name, found, err, share.ID)
			}
		}
	}
	for what, count := range map[string]func(context.Context) (int, error){
		"users 6": db.User.Query().Count, "files 60": db.File.Query().Count, "entities 48": db.Entity.Query().Count,
		"shares 48": db.Share.Query().Count, "metadata 114": db.Metadata.Query().Count,
	} {
		name, want, _ := strings.Cut(what, " ")
		if n, err := count(ctx); err != nil || fmt.Sprint(n) != want {
			t.Errorf("%s: %d, %v; want %s", name, n, err, want)
		}
	}
}
