package sql

import (
	"fmt"
	"testing"
	"time"

	"github.com/ansible-semaphore/semaphore/db"
	"github.com/ansible-semaphore/semaphore/util"
)

// store returns Semaphore's store, on an empty database that it migrates
// through all its versions.
func store(t *testing.T) *SqlDb {
	t.Helper()
	util.Config = &util.ConfigType{
		Dialect: "mysql",
		MySQL:   &util.DbConfig{Hostname: "127.0.0.1:3306", Username: "root", DbName: "conformance"},
	}
	s := &SqlDb{}
	s.Connect("test")
	t.Cleanup(func() { s.Close("test") })
	for range 2 { // the second time there is nothing to migrate
		if err := db.Migrate(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// must returns the value of a call, and panics if the call failed.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestProjects(t *testing.T) {
	s := store(t)
	for i := range 12 {
		name := fmt.Sprint("name", i)
		user := must(s.CreateUser(db.UserWithPwd{Pwd: "secret", User: db.User{Username: name, Name: name, Email: name + "@example.com"}}))
		project := must(s.CreateProject(db.Project{Name: name, Created: time.Now()}))
		must(s.CreateProjectUser(db.ProjectUser{ProjectID: project.ID, UserID: user.ID, Role: db.ProjectOwner}))
		key := must(s.CreateAccessKey(db.AccessKey{Name: name, Type: db.AccessKeyNone, ProjectID: &project.ID}))
		repository := must(s.CreateRepository(db.Repository{Name: name, ProjectID: project.ID, GitURL: "url", GitBranch: "main", SSHKeyID: key.ID}))
		inventory := must(s.CreateInventory(db.Inventory{Name: name, ProjectID: project.ID, SSHKeyID: &key.ID, Type: db.InventoryStatic}))
		environment := must(s.CreateEnvironment(db.Environment{Name: name, ProjectID: project.ID, JSON: "{}"}))
		view := must(s.CreateView(db.View{ProjectID: project.ID, Title: name, Position: i}))
		template := must(s.CreateTemplate(db.Template{
			Name: name, Playbook: "play.yml", ProjectID: project.ID, RepositoryID: repository.ID,
			InventoryID: &inventory.ID, EnvironmentID: &environment.ID, ViewID: &view.ID,
		}))
		schedule := must(s.CreateSchedule(db.Schedule{ProjectID: project.ID, TemplateID: template.ID, CronFormat: "* * * * *", Name: name}))
		task := must(s.CreateTask(db.Task{ProjectID: project.ID, TemplateID: template.ID, UserID: &user.ID, Created: time.Now()}, 0))
		for j := range 5 {
			must(s.CreateTaskOutput(db.TaskOutput{TaskID: task.ID, Output: fmt.Sprint(name, "-", j), Time: time.Now().Add(time.Duration(j) * time.Second)}))
		}
		session := must(s.CreateSession(db.Session{UserID: user.ID, Created: time.Now(), LastActive: time.Now(), IP: "127.0.0.1"}))
		integration := must(s.CreateIntegration(db.Integration{Name: name, ProjectID: project.ID, TemplateID: template.ID}))
		matcher := must(s.CreateIntegrationMatcher(project.ID, db.IntegrationMatcher{
			Name: name, IntegrationID: integration.ID, Key: "key", Value: "value",
			MatchType: db.IntegrationMatchBody, Method: db.IntegrationMatchMethodEquals, BodyDataType: db.IntegrationBodyDataJSON,
		}))
		must(s.CreateEvent(db.Event{UserID: &user.ID, ProjectID: &project.ID, Description: &name, Created: time.Now()}))

		// Each row is found by the id that its creation returned.
		for what, got := range map[string]string{
			"user":        must(s.GetUser(user.ID)).Name,
			"project":     must(s.GetProject(project.ID)).Name,
			"key":         must(s.GetAccessKey(project.ID, key.ID)).Name,
			"repository":  must(s.GetRepository(project.ID, repository.ID)).Name,
			"inventory":   must(s.GetInventory(project.ID, inventory.ID)).Name,
			"environment": must(s.GetEnvironment(project.ID, environment.ID)).Name,
			"view":        must(s.GetView(project.ID, view.ID)).Title,
			"template":    must(s.GetTemplate(project.ID, template.ID)).Name,
			"schedule":    must(s.GetSchedule(project.ID, schedule.ID)).Name,
			"integration": must(s.GetIntegration(project.ID, integration.ID)).Name,
			"matcher":     must(s.GetIntegrationMatcher(project.ID, matcher.ID, integration.ID)).Name,
		} {
			if got != name {
				t.Errorf("name of the %s = %q, want %q", what, got, name)
			}
		}
		if got := must(s.GetTask(project.ID, task.ID)); got.TemplateID != template.ID {
			t.Errorf("task of %s = %+v, want the template %d", name, got, template.ID)
		}
		if got := must(s.GetSession(user.ID, session.ID)); got.IP != "127.0.0.1" {
			t.Errorf("session of %s = %+v, want the IP 127.0.0.1", name, got)
		}
		outputs := must(s.GetTaskOutputs(project.ID, task.ID))
		if len(outputs) != 5 {
			t.Errorf("outputs of the task of %s = %v, want five", name, outputs)
		}
		for j, output := range outputs {
			if output.Output != fmt.Sprint(name, "-", j) {
				t.Errorf("line %d of %s = %q, want %[2]s-%[1]d", j, name, output.Output)
			}
		}
		if events := must(s.GetEvents(project.ID, db.RetrieveQueryParams{})); len(events) != 1 {
			t.Errorf("events of %s = %v, want one", name, events)
		}
	}
	if users := must(s.GetUsers(db.RetrieveQueryParams{})); len(users) != 12 {
		t.Errorf("GetUsers() returned %d users, want 12", len(users))
	}
	if projects := must(s.GetAllProjects()); len(projects) != 12 {
		t.Errorf("GetAllProjects() returned %d projects, want 12", len(projects))
	}
}
