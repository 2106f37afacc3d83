package main

import (
	"maps"

	"github.com/leafsql/leafsql/internal/chinese"
)

// chineseTexts contains all texts of the command.
var chineseTexts = func() chinese.Texts {
	all := maps.Clone(commandTexts)
	maps.Copy(all, findingTexts)
	return all
}()

// commandTexts contains the texts of the command itself.
var commandTexts = chinese.Texts{
	"Usage: leafsql %s\n  %s\n":             "用法：leafsql %s\n  %s\n",
	"\nExample: leafsql %s\nMore: %s\n\n":   "\n例子：leafsql %s\n详见：%s\n\n",
	"Usage: leafsql SUBCOMMAND [flags]\n\n": "用法：leafsql 子命令 [参数]\n\n",
	`
leafsql help SUBCOMMAND lists its flags, with an example.
A DSN is that of mysql-leaf, with its leaf… parameters:
  'user:password@tcp(127.0.0.1:3306)/shop?leafTables=orders'
env:NAME is a DSN in an environment variable, where other users do not see it.

Exit codes: 0 no problems, 1 something to fix, 2 the command failed.
`: `
leafsql help 子命令 列出它的参数，并给出例子。
DSN 就是 mysql-leaf 的 DSN，带有 leaf… 参数：
  'user:password@tcp(127.0.0.1:3306)/shop?leafTables=orders'
env:NAME 表示 DSN 在环境变量 NAME 里，别的用户看不到。

退出码：0 正常，1 有东西要修，2 无法判断或者没做成。
`,

	"https://github.com/leafsql/leafsql/blob/main/docs/": "https://github.com/leafsql/leafsql/blob/main/docs/zh-CN/",

	// Subcommands.
	"find problems of tables and leaf_alloc, with the SQL that fixes them":                 "检查各张表和 leaf_alloc 有什么问题，并给出修复的 SQL",
	"create leaf_alloc, and rows above the highest key of all shards":                      "创建 leaf_alloc，并为每张表加一行，起点高于所有分片里最大的主键",
	"take tables from AUTO_INCREMENT, or from Java Leaf, step by step":                     "把表从 AUTO_INCREMENT 或 Java 版 Leaf 一步一步迁移过来",
	"decode snowflakes into time, worker id and sequence":                                  "解读雪花 id：时间、机器号、序号",
	"show leaf_alloc's rows, and how fast their ids go":                                    "显示 leaf_alloc 的各行，以及 id 用得多快",
	"list worker ids with their holders and lease ends":                                    "显示谁持有哪个机器号、到什么时候为止",
	"compare INSERTs with those of AUTO_INCREMENT, in separate tables":                     "在自己建的表里对比 leafsql 与 AUTO_INCREMENT 的写入速度",
	"give ids over HTTP, as Java Leaf does, with a page and metrics":                       "像 Java 版 Leaf 那样通过 HTTP 发号，带状态页和监控指标",
	"fill the INSERTs of programs in any language, which connect to it as to their server": "为任何语言的程序补主键，程序像连接服务器一样连接它",
	"write the script by which a shell completes subcommands and flags":                    "输出 shell 补全子命令和参数的脚本",
	"print the version of leafsql":                                                         "显示 leafsql 的版本",
	"leafsql %s, %s, %s\n":                                                                 "leafsql %s, %s, %s\n",

	// Flags. The backquoted word is the name of the value.
	"the `DSN` as mysql-leaf takes it, or env:NAME":                                     "mysql-leaf 的 `DSN`，或者 env:NAME",
	"the `DSN` of another shard that takes ids from the same leaf_alloc; once for each": "另一个分片的 `DSN`，它从同一张 leaf_alloc 取 id；每个分片写一次",
	"write JSON": "输出 JSON",
	"an earlier report, made with -json: the `file` from which ids per second are counted":                                    "以前用 -json 得到的报告 `file`，从那时起计算每秒的 id 数",
	"how long to count ids per second, such as 1m":                                                                            "用多长时间统计每秒的 id 数，例如 1m",
	"print the SQL and the changes of the registry of worker ids without executing them":                                      "只输出 SQL 以及要在机器号的注册中心里做的事，什么都不执行",
	"declare that the registry of worker ids is new and that no process uses it; refused if it has any worker id":             "声明机器号的注册中心是新的，没有使用它的进程在运行；里面已有机器号时会拒绝",
	"the `DSNs` A|B|C of leafStore before version 0.2: make one store, that of -dsn, of them; all writers have to be stopped": "0.2 之前的 leafStore 的 `DSNs` A|B|C：合成 -dsn 的那一个库；要先停掉所有写入方",
	"read whole tables if no index has the highest key":                                                                       "没有索引能给出最大主键时，读取整张表",
	"run this `step`, which has to be the next one: widen, switch, drop, unguard":                                             "执行这一步 `step`，必须正好是下一步：widen、switch、drop、unguard",
	"undo the last step, as long as the trigger exists":                                                                       "触发器还在时，撤销最后一步",
	"leave the key's type as it is":                                                                                           "不改变主键的类型",
	"`TIME-WORKER-SEQUENCE[@EPOCH]`, as in leafSnowflake (default 41-10-12@1288834974657, Leaf's)":                            "`TIME-WORKER-SEQUENCE[@EPOCH]`，与 leafSnowflake 相同（默认是 Leaf 的 41-10-12@1288834974657）",
	"look again and again, until interrupted":                                                                                 "不断刷新，直到被中断",
	"how long to wait between two looks":                                                                                      "两次刷新之间等多久",
	"how many connections insert at the same time":                                                                            "同时插入的连接数",
	"how long each kind of INSERT runs":                                                                                       "每种 INSERT 运行多久",
	"\nEach flag can also be set in the environment, as %sMAX_BLOCK for -max-block.\n\n":                                      "\n每个参数也可以写在环境变量里，例如 -max-block 对应 %sMAX_BLOCK。\n\n",
	"the `DSN` as mysql-leaf takes it, or env:NAME; each row of its leaf_alloc is a tag":                                      "mysql-leaf 的 `DSN`，或者 env:NAME；其中 leaf_alloc 的每一行是一个 tag",
	"`address` to serve at":         "监听的地址 `address`",
	"serve snowflakes alone":        "只提供雪花 id",
	"serve ids of leaf_alloc alone": "只提供 leaf_alloc 的 id",
	"`file` with the certificate in PEM, and those that lead to its authority": "PEM 证书的 `file`，要包括通往根证书的中间证书",
	"`file` with its key in PEM": "PEM 私钥的 `file`",
	"the bearer token that requests must bring; other users see flags, so rather put it in the environment or the file": "请求必须携带的 bearer token；别的用户能看到命令行参数，最好写在环境变量或文件里",
	"the longest a request waits for ids":                                                        "一个请求最多等多久",
	"the most ids of one request":                                                                "一个请求最多取多少个 id",
	"the most requests at a time, half of which may wait for ids":                                "同时最多处理多少个请求，其中最多一半可以处于等待",
	"the most `MiB` of memory for the long commands of all clients":                              "所有客户端的长命令最多占多少 `MiB` 内存",
	"the most connections at a time":                                                             "同时最多多少个连接",
	"how long to serve on after SIGTERM, not ready any more":                                     "收到 SIGTERM 之后继续服务多久，这期间不再就绪",
	"`format` of the log on standard error: text, or json with one object a line (default text)": "标准错误上的日志格式 `format`：text，或者每行一个对象的 json（默认 text）",
	"`file` with settings: YAML with the flags' names as keys, or Java Leaf's leaf.properties":   "配置文件 `file`：以参数名为键的 YAML，或者 Java 版 Leaf 的 leaf.properties",

	"`address` of the server to which clients are taken: host:port, or the path of a unix socket (default the DSN's)": "服务器的地址 `address`，客户端被带到那里：host:port，或者 unix socket 的路径（默认是 DSN 里的地址）",
	"`address` to listen at: host:port, or the path of a unix socket; once for each (default 127.0.0.1:3307)":         "监听的地址 `address`：host:port，或者 unix socket 的路径；每个地址写一次（默认 127.0.0.1:3307）",
	"refuse clients without TLS":                                   "拒绝不用 TLS 的客户端",
	"listen without -cert on an address that other machines reach": "没有 -cert 也在其他机器能访问的地址上监听",
	"`networks` of balancers, such as 10.0.0.0/8,127.0.0.1: each connection from there begins with a PROXY header (default none)": "负载均衡的网络 `networks`，例如 10.0.0.0/8,127.0.0.1：来自那里的每个连接以 PROXY 头开始（默认没有）",
	"begin connections of clients to the server with a PROXY header, as MariaDB's proxy_protocol_networks allows":                 "客户端到数据库的连接以 PROXY 头开始，MariaDB 的 proxy_protocol_networks 允许这样",
	"maximum time of a wait for ids":                                              "一次等 id 最多多久",
	"how long transactions may take to end after SIGTERM":                         "收到 SIGTERM 之后，事务最多还有多久结束",
	"`address` of the status page, /metrics, /healthz and /readyz (default none)": "状态页、/metrics、/healthz 和 /readyz 的地址 `address`（默认没有）",

	// Columns.
	"SERVER": "服务器", "TABLE": "表", "KEY": "主键", "TYPE": "类型", "IDS FROM": "id 来源", "HIGHEST KEY": "最大主键", "NEXT ID": "下一个 id", "USED": "已用", "LASTS": "还能用",
	"TAG": "TAG", "STEP": "STEP", "LAST FETCH": "最近取号", "IDS/S": "每秒 id",
	"WORKER": "机器号", "OWNER": "持有者", "UNTIL": "有效到",
	"ID": "ID", "TIME": "时间", "DATA CENTRE": "数据中心", "SEQUENCE": "序号",
	"KEYS FROM": "主键来源", "ROWS": "行数", "ROWS/S": "每秒行数", "P50": "P50", "P99": "P99",

	// Progress.
	"%d tables looked at": "已查看 %d 张表",
	"%s: %d rows":         "%s：%d 行",
	"looking at rights, triggers, routines and views": "正在查看权限、触发器、存储过程和视图",
	"counting ids for %v more":                        "统计 id，还需 %v",
	"reading all of %s":                               "正在读取整张表 %s",
	"making %d documents of worker ids":               "正在建立 %d 个机器号的文档",
	"%d of %d worker ids read":                        "已读取 %[2]d 个机器号中的 %[1]d 个",

	// check.
	"Server: %s\n\n": "服务器：%s\n\n",
	"error":          "错误",
	"warning":        "警告",
	"unknown":        "无法判断",
	"note":           "提示",
	"  Fix: %s.\n":   "  处理办法：%s。\n",
	": %s: %s":       "：%s：%s",
	"-- on %s":       "-- 在 %s 上",
	", ":             "、",
	"; ":             "；",
	"Nothing to do. Run leafsql check again after changes of tables or servers.\n":                "不用做什么。改过表或服务器之后，请再运行 leafsql check。\n",
	"Next: apply the fixes above, so that the check has a result, and run leafsql check again.\n": "接下来：按上面的办法处理，让检查得出结果，再运行 leafsql check。\n",
	"Next, in this order:\n": "接下来依次：\n",
	"Run leafsql init with the same DSNs and -dry-run: it shows the missing tables and rows. Then run it without -dry-run.": "用同样的 DSN 运行 leafsql init -dry-run，它会列出缺少的表和行；然后去掉 -dry-run 再运行一次。",
	"Run leafsql migrate with the same DSNs for the tables with AUTO_INCREMENT: it shows each step before you run it.":      "对还有 AUTO_INCREMENT 的表，用同样的 DSN 运行 leafsql migrate：每一步执行之前都会先显示。",
	"Apply the fixes from top to bottom: one may depend on those before it.":                                                "从上到下逐条处理：后面的可能依赖前面的。",
	"Apply the other fixes from top to bottom: one may depend on those before it.":                                          "其余的从上到下逐条处理：后面的可能依赖前面的。",
	"Run leafsql check again.":                        "再运行 leafsql check。",
	"Tables: %d, tags: %d, errors and warnings: %d\n": "表：%d，tag：%d，错误和警告：%d\n",

	// migrate.
	"continue although triggers, routines or events write the tables, or some of them are not visible": "即使有触发器、存储过程或事件写这些表，或者看不到它们的全部，也继续",
	"running on the tables of %s": "正在处理 %s 的各张表",
	"\n%s: done. leaf_alloc's row is above all keys, and the database needs no further change.\n": "\n%s：完成。leaf_alloc 的那一行高于所有主键，数据库里不用再做什么。\n",
	"\n%s: next is -do %s\n": "\n%s：下一步是 -do %s\n",
	"  The step is incomplete, or -back was interrupted. It already %s on: %s.\n": "  只做了一半，或者回滚时被中断。以下各表已经%s：%s。\n",
	"has a BIGINT key":           "是 BIGINT 主键",
	"refuses rows without a key": "拒绝没有主键的行",
	"has no AUTO_INCREMENT":      "没有 AUTO_INCREMENT",
	"has no trigger":             "没有触发器",
	`makes the key BIGINT. The server copies the table and blocks writes meanwhile; change a large table with an online schema-change tool. -keep-type leaves it out.`: `把主键改成 BIGINT。服务器会复制整张表，期间不能写入；大表最好用在线改表工具。-keep-type 跳过这一步。`,
	`creates a trigger that refuses rows without a key, then puts leaf_alloc's row above the highest key of all shards.
  Writers that do not use mysql-leaf fail from then on, with error 1644, until they are deployed with it: prepare that before. Programs with mysql-leaf that ran before a -back hold ids from before: restart them.
  -back drops the trigger again.`: `创建一个触发器，拒绝没有主键的行，再把 leaf_alloc 的那一行调到所有分片里最大的主键之上。
  从这时起，没有用 mysql-leaf 的写入方报 1644，直到换上它为止：请提前备好新版本。执行 -back 之前就在运行的 mysql-leaf 程序还持有那时的 id：请重启它们。
  -back 会删掉触发器。`,
	`removes AUTO_INCREMENT; MySQL copies the table and blocks writes meanwhile.
  Before it, deploy all writers with mysql-leaf and check that they write. Until then, stop these writers and run -back to undo the step.`: `去掉 AUTO_INCREMENT；MySQL 会复制整张表，期间不能写入。
  在此之前，所有写入方都要换上 mysql-leaf，并确认它们写入正常。到那时为止，回滚的办法是停掉它们，再执行 -back。`,
	`drops the trigger. A forgotten writer then gets error 1364. Until then -back gives AUTO_INCREMENT back.`: `删除触发器。之后漏掉的写入方会报 1364。到那时为止，-back 会把 AUTO_INCREMENT 加回来。`,
	`
%s replaces selected keys by NULL if a table has a trigger BEFORE INSERT (MDEV-36026), and switch creates such a trigger.
While it exists, LOAD DATA into the tables is refused, and from drop on so is INSERT … SELECT. Upgrade the server to %s before switch, or read the rows and insert them with VALUES until unguard.
`: `
%s：表有 BEFORE INSERT 触发器时，它会把 SELECT 出来的主键当成 NULL（MDEV-36026），而 switch 创建的正是这样的触发器。
触发器还在时，写这些表的 LOAD DATA 会被拒绝，从 drop 起 INSERT … SELECT 也一样。请在 switch 之前把服务器升级到 %s，或者在 unguard 之前读出各行，再用 VALUES 插入。
`,
	"%s is refused for %s, and nothing was changed.\n":                                                            "%[2]s 的 %[1]s 被拒绝，什么都没有改动。\n",
	"\nswitch, drop and unguard are refused as long as leafsql check reports programs that they would break:\n\n": "\n只要 leafsql check 还能查出会被破坏的东西，switch、drop 和 unguard 就会被拒绝：\n\n",
	`
A trigger, a routine or an event never gets keys from mysql-leaf. A table that it has to write keeps AUTO_INCREMENT, and !table in leafTables leaves it out. If it no longer runs, or always writes a key from leafsql, use -ignore-programs.
`: `
触发器、存储过程和事件永远不会从 mysql-leaf 得到主键。必须由它们写入的表保留 AUTO_INCREMENT，并在 leafTables 里用 !table 排除。
如果它已经不再运行，或者总是自带 leafsql 给的主键，可以用 -ignore-programs 继续。
`,
	"\n%s: stop all writers, run this command again for the current values of max_id, run its SQL on every shard, and start writers without leafsql.\n": "\n%s：停掉所有写入方，再运行一次本命令以取得当前的 max_id，在每个分片上执行它给出的 SQL，再启动不用 leafsql 的写入方。\n",
	"The way back": "回滚的办法",
	"The way back, if the keys were AUTO_INCREMENT's before": "如果主键以前来自 AUTO_INCREMENT，回滚的办法",
	"If Java Leaf issues the ids, Java Leaf and mysql-leaf can run at the same time: deploy writers with mysql-leaf one by one, and undo it the same way.\n": "如果由 Java 版 Leaf 发号，它和 mysql-leaf 可以并行：写入方可以一个一个地换上 mysql-leaf，也可以一个一个地换回去。\n",
	"\nThe order: -do widen, -do switch, deploy writers with mysql-leaf, -do drop, -do unguard.\n":                                                           "\n顺序：-do widen，-do switch，写入方换上 mysql-leaf，-do drop，-do unguard。\n",

	// init.
	"-- %s: make the documents of %d worker ids":                                                                                              "-- %s：建立 %d 个机器号的文档",
	"-- %s: write the registry's own document":                                                                                                "-- %s：写入注册中心自己的文档",
	"-- %s: renew what is known of %d worker ids":                                                                                             "-- %s：更新 %d 个机器号的已知信息",
	"-- ids are safe from %s on":                                                                                                              "-- 从 %s 起 id 是安全的",
	"leaf_alloc has a row above all keys for each of %d tags; nothing to do.\n":                                                               "leaf_alloc 里 %d 个 tag 的行都高于所有主键，不用做什么。\n",
	"Done. Processes that were running may hold ranges from before; restart them if a row was raised.\n":                                      "完成。正在运行的进程可能还持有以前的号段；如果调大了某一行，请重启它们。\n",
	"%s still has AUTO_INCREMENT: writers with and without mysql-leaf must not write it at the same time.\n":                                  "%s 还有 AUTO_INCREMENT：用 mysql-leaf 的和不用的程序不能同时写它。\n",
	"%s still has AUTO_INCREMENT: writers with and without mysql-leaf must not write it at the same time; migrate it with leafsql migrate.\n": "%s 还有 AUTO_INCREMENT：用 mysql-leaf 的和不用的程序不能同时写它；请用 leafsql migrate 迁移。\n",

	// workers.
	", over":                               "，已过期",
	"\n%s: %d of %d worker ids are free\n": "\n%[1]s：%[3]d 个机器号中有 %[2]d 个空闲\n",
}
