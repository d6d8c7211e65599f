//! Heap blocks of sampled programs: named by the line that allocated them. Programs say themselves where their blocks lie.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::{memlode, stderr, stdout};

/// Chains of items, which are followed in an order that no cache knows. Each block has a line of output: process, where it
/// begins and ends, and whether it is large enough to have a name.
const PROGRAM: &str = r#"
    #include <pthread.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/wait.h>
    #include <unistd.h>
    struct item { struct item *next; long key, rest[6]; };
    // Ten times the samples that the tests ask for, on a machine whose caches are fast: they come by chance.
    enum { STEPS = 24 << 20 };
    static void told(void *from, size_t bytes, int is_large) {
        printf("%d %lu %lu %d\n", getpid(), (unsigned long)from, (unsigned long)from + bytes, is_large);
        fflush(stdout);
    }
    __attribute__((noinline)) struct item *build(size_t count) {
        struct item *items = malloc(count * sizeof *items); // <-- allocated
        for (size_t at = 0, i = 0; i < count; i++) {
            size_t to = (at + 40503) % count;
            items[at].next = &items[to]; items[at].key = (long)i; at = to;
        }
        told(items, count * sizeof *items, 1);
        return items;
    }
    __attribute__((noinline)) long scan(struct item *from, long steps) {
        long sum = 0;
        for (; steps > 0; steps--) { sum += from->key; from = from->next; }
        return sum;
    }
    static void *work(void *argument) {
        size_t count = (size_t)argument;
        struct item *own = build(count);
        long sum = scan(own, STEPS);
        free(own);
        return (void *)sum;
    }
    // Small blocks, in memory that large ones were in.
    static void again(void) {
        enum { COUNT = 512 };
        struct item *small[COUNT];
        for (int at = 0; at < COUNT; at++) {
            small[at] = malloc(sizeof **small);
            told(small[at], sizeof **small, 0);
        }
        for (int at = 0; at < COUNT; at++) { small[at]->key = at; small[at]->next = small[(at + 201) % COUNT]; }
        printf("%ld\n", scan(small[0], STEPS));
    }
    int main(int count, char **words) {
        const char *how = count > 1 ? words[1] : "";
        if (strcmp(how, "threads") == 0) {
            pthread_t threads[3];
            for (size_t at = 0; at < 3; at++) pthread_create(&threads[at], NULL, work, (void *)(1024UL << 2 * at));
            for (int at = 0; at < 3; at++) pthread_join(threads[at], NULL);
        } else if (strcmp(how, "forks") == 0) {
            struct item *shared = build(1 << 14);
            pid_t child = fork();
            long sum = scan(shared, STEPS);
            if (child == 0) { free(shared); work((void *)1024); _exit(sum == 3); }
            waitpid(child, NULL, 0);
        } else {
            work((void *)1024);
            again();
        }
        return 0;
    }"#;

fn built(folder: &TempDir, compiler: &str, options: &[&str], text: &str) -> PathBuf {
    let extension = if compiler.contains("++") { "cpp" } else { "c" };
    let (source, program) =
        (folder.path().join(format!("program.{extension}")), folder.path().join("program"));
    fs::write(&source, text).expect("room");
    let mut command = Process::new(compiler);
    command.args(["-O2", "-g", "-pthread"]).arg(&source).args(options).arg("-o").arg(&program);
    assert!(command.status().expect("a compiler").success());
    program
}

fn sampled(words: &[&str], program: &Path, argument: &str) -> Output {
    let mut sample = memlode();
    sample.args(["sample", "--rate", "5000"]).args(words).arg("--").arg(program).arg(argument);
    sample.output().expect("runs")
}

/// A block as the program told it: process, begin, end, whether it has a name.
type Told = (u64, u64, u64, bool);

fn told(text: &str) -> Vec<Told> {
    let line = |line: &str| {
        let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [pid, from, to, is_large] = numbers[..] else { return None };
        Some((pid, from, to, is_large == 1))
    };
    text.lines().filter_map(line).collect()
}

/// Each sample that touched a block of the program's is in that one, or in none if it is small.
fn assert_blocks_are_those_of(program: &Path, argument: &str, folder: &Path) {
    let kept = folder.join("kept");
    let output = sampled(&["--json", "--force", "-o", kept.to_str().expect("UTF-8")], program, argument);
    assert!(output.status.success(), "{}", stderr(&output));
    // Only so is the program's own output apart.
    let blocks = told(&stderr(&output));
    let now: Value = serde_json::from_slice(&output.stdout).expect("JSON alone");
    let mut report = memlode();
    let later = report.arg("report").arg(&kept).arg("--json").output().expect("runs");
    let later: Value = serde_json::from_slice(&later.stdout).expect("JSON");
    assert_eq!(later["blocks"], now["blocks"], "a trace says what was said at once");
    let table = folder.join("samples.csv");
    let exported = memlode().arg("export").arg(&kept).arg("--to").arg(&table).output().expect("runs");
    assert!(exported.status.success(), "{}", stderr(&exported));
    let text = fs::read_to_string(&table).expect("a table");
    let mut rows = text.lines().map(|row| row.split(',').collect::<Vec<_>>());
    let names = rows.next().expect("names");
    let column =
        |name| names.iter().position(|one| *one == name).unwrap_or_else(|| panic!("{name}: {names:?}"));
    let [pid, address, function, block, bytes] =
        ["pid", "address", "function", "block", "block_bytes"].map(column);
    let (mut large, mut small) = (0, 0);
    for row in rows.filter(|row| row[function] == "scan" && !row[address].is_empty()) {
        let number = |at: usize| row[at].parse::<u64>().ok();
        let at = number(address).expect("an address");
        let holds = |told: &&Told| (told.1..told.2).contains(&at);
        // Blocks of a parent are its children's, too; later ones lie where earlier ones lay.
        let own: Vec<&Told> = blocks.iter().filter(holds).collect();
        let found = number(block).map(|from| (from, from + number(bytes).unwrap_or(0)));
        if !own.is_empty() && own.iter().all(|told| told.3) {
            assert!(own.iter().any(|told| found == Some((told.1, told.2))), "{row:?}: {own:?}");
            large += 1;
        } else if own.iter().any(|told| !told.3) && argument.is_empty() {
            small += usize::from(found.is_none());
            large += usize::from(found.is_some());
        }
        assert!(number(pid).is_some());
    }
    assert!(
        large > 20 && (small > 20) == argument.is_empty(),
        "{large} in large blocks, {small} in small ones"
    );
    let line = 1 + PROGRAM.lines().position(|line| line.contains("// <-- allocated")).expect("a line") as u64;
    let first = &now["blocks"][0];
    assert_eq!(first["allocated"]["calls"][0]["line"], line, "{first:#}");
    assert_eq!(first["allocated"]["calls"][0]["function"], "build", "{first:#}");
    assert_eq!(first["data"].as_str().map(|name| &name[..5]), Some("item."), "{first:#}");
    let hot =
        now["data"].as_array().expect("data").iter().find(|data| data["kind"] == "item").expect("items");
    assert_eq!(hot["allocated"]["calls"][0]["line"], line, "{hot:#}");
}

#[test]
fn a_hot_block_is_named_by_the_line_that_allocated_it() {
    for compiler in ["clang-22", "gcc"] {
        let folder = tempfile::tempdir().expect("a folder");
        let program = built(&folder, compiler, &[], PROGRAM);
        assert_blocks_are_those_of(&program, "", folder.path());
        let text = stdout(&sampled(&[], &program, ""));
        assert!(text.contains("heap block from build at program.c:"), "{text}");
        let text = stdout(&sampled(&["--blocks", "none"], &program, ""));
        assert!(!text.contains("heap block"), "{text}");
    }
}

#[test]
fn blocks_of_threads_and_of_a_parent_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = built(&folder, "gcc", &[], PROGRAM);
    for how in ["threads", "forks"] {
        assert_blocks_are_those_of(&program, how, folder.path());
    }
}

/// Its blocks are parts of what it maps; it runs as it does alone.
#[test]
fn a_program_with_an_allocator_of_its_own_runs_and_names_what_it_maps() {
    let own = r#"
    #include <stddef.h>
    #include <sys/mman.h>
    static char *next, *end;
    __attribute__((noinline)) static void more(void) {
        next = mmap(0, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        end = next + (64 << 20);
    }
    void *malloc(size_t bytes) {
        if (!next) more();
        char *block = next;
        next += (bytes + 63) / 64 * 64;
        return next <= end ? block : 0;
    }
    void *calloc(size_t count, size_t each) { return malloc(count * each); }
    void *realloc(void *block, size_t bytes) { (void)block; return block ? 0 : malloc(bytes); }
    void free(void *block) { (void)block; }"#;
    let folder = tempfile::tempdir().expect("a folder");
    let program = built(&folder, "gcc", &["-fno-builtin"], &(PROGRAM.to_owned() + own));
    let output = sampled(&["--json"], &program, "");
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON alone");
    let first = &report["blocks"][0]["allocated"];
    let function = &first["calls"][0]["function"];
    assert_eq!((&first["is_mapped"], function), (&true.into(), &"more".into()), "{first:#}");
    let alone = Process::new(&program).output().expect("runs");
    let sums =
        |text: &str| text.lines().filter(|line| !line.contains(' ')).map(str::to_owned).collect::<Vec<_>>();
    let said = stderr(&output);
    assert!(sums(&stdout(&alone)).iter().all(|sum| said.lines().any(|line| line == sum)), "{said}");
}

/// It has a block from its beginning on, and takes another one again and again.
const SERVER: &str = r#"
    #include <stdio.h>
    #include <stdlib.h>
    struct item { struct item *next; long key, rest[6]; };
    enum { COUNT = 1 << 10 };
    static struct item *chained(struct item *items) {
        for (size_t at = 0; at < COUNT; at++) items[at].next = &items[(at + 403) % COUNT];
        return items;
    }
    __attribute__((noinline)) static struct item *early(void) {
        return chained(calloc(2 * COUNT, sizeof(struct item)));
    }
    __attribute__((noinline)) static struct item *fresh(void) {
        return chained(calloc(COUNT, sizeof(struct item)));
    }
    __attribute__((noinline)) static long scan(struct item *from, long steps) {
        long sum = 0;
        for (; steps > 0; steps--) { sum += from->key; from = from->next; }
        return sum;
    }
    int main(void) {
        struct item *old = early();
        long sum = 0;
        puts("ready");
        fflush(stdout);
        while (sum == 0) {
            struct item *now = fresh();
            sum += scan(old, 1 << 20) + scan(now, 1 << 20);
            free(now);
        }
    }"#;

/// A process that runs until the end of a test.
struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Blocks of a process that waits for a reader: those that are taken while it is sampled have names, each time.
#[test]
fn a_process_that_waits_notes_its_blocks_when_it_is_sampled() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = built(&folder, "gcc", &[], SERVER);
    let start = |library: Option<&Path>| {
        let mut server = Process::new(&program);
        if let Some(library) = library {
            server.env("LD_PRELOAD", library).env("MEMLODE_BLOCKS", "wait");
        }
        let mut server = Running(server.stdout(std::process::Stdio::piped()).spawn().expect("runs"));
        let mut line = String::new();
        let said = server.0.stdout.take().expect("its output");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(said), &mut line).expect("a line");
        server
    };
    let sample = |server: &Running| {
        let mut sample = memlode();
        sample.args(["sample", "--rate", "10000", "--json", "--duration", "2s", "-p"]);
        let output = sample.arg(server.0.id().to_string()).output().expect("runs");
        assert!(output.status.success(), "{}", stderr(&output));
        output
    };
    let untold = stderr(&sample(&start(None)));
    let words = untold.split_whitespace().find_map(|word| word.strip_prefix("LD_PRELOAD="));
    let library = PathBuf::from(words.expect("it says where the library is"));
    let server = start(Some(&library));
    for _ in 0..2 {
        let report: Value = serde_json::from_slice(&sample(&server).stdout).expect("JSON alone");
        let rows = report["blocks"].as_array().expect("blocks");
        let is_fresh = |row: &&Value| row["allocated"]["calls"][0]["function"] == "fresh";
        let is_older = |row: &&Value| row["allocated"]["is_older"] == true;
        let samples = |row: Option<&Value>| row.map_or(0, |row| row["samples"].as_u64().unwrap_or(0));
        let (fresh, older) = (rows.iter().find(is_fresh), rows.iter().find(is_older));
        assert!(samples(fresh) > 0 && samples(older) > 0, "{rows:#?}");
        assert!(
            fresh.is_some_and(|row| row["data"] == "item.key" || row["data"] == "item.next"),
            "{rows:#?}"
        );
        assert!(rows.iter().all(|row| is_fresh(&row) || is_older(&row)), "{rows:#?}");
    }
}

/// Calls of the C++ library are not what allocated.
#[test]
fn blocks_of_containers_are_named_by_the_programs_own_line() {
    let text = r#"
    #include <cstdio>
    #include <vector>
    struct cell { long key, rest[7]; };
    __attribute__((noinline)) std::vector<cell> make(unsigned long count) { return std::vector<cell>(count); }
    int main() {
        auto cells = make(1 << 16);
        unsigned long at = 0, sum = 0;
        for (long i = 0; i < 4 << 20; i++) { sum += cells[at].key++; at = (at + 40503 + sum % 2) % cells.size(); }
        std::printf("%lu\n", sum);
    }"#;
    let folder = tempfile::tempdir().expect("a folder");
    let program = built(&folder, "g++", &[], text);
    let output = sampled(&["--json"], &program, "");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON alone");
    let first = &report["blocks"][0];
    let call = &first["allocated"]["calls"][0];
    assert!(call["file"].as_str().is_some_and(|file| file.ends_with("program.cpp")), "{first:#}");
    assert_eq!(first["bytes"], 64 << 16, "{first:#}");
}

/// Programs that preload nothing are sampled all the same, with one sentence on the part that is missing.
#[test]
fn programs_that_preload_nothing_are_told_in_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = built(&folder, "gcc", &["-static"], PROGRAM);
    let notes = |output: &Output| {
        assert!(output.status.success(), "{}", stderr(output));
        let said = stderr(output);
        said.lines()
            .filter(|line| line.contains("heap blocks have no names"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let said = notes(&sampled(&[], &program, ""));
    assert!(said.len() == 1 && said[0].contains("is linked statically"), "{said:?}");
    let program = built(&folder, "gcc", &[], PROGRAM);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o4755);
    fs::set_permissions(&program, mode).expect("ours");
    let said = notes(&sampled(&[], &program, ""));
    assert!(said.len() == 1 && said[0].contains("runs as another user or group"), "{said:?}");
}
