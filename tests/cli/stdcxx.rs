//! Functions of libstdc++ that are recorded: every node of a walk is in the trace, and programs are what they were.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::{installation, memlode, stderr, stdout};

/// Prints the address of each node of a map as the map is walked, forwards and backwards, of each node of a list, and in
/// what order an unordered map has its elements.
const PROGRAM: &str = r#"
#include <cstdio>
#include <list>
#include <map>
#include <string>
#include <unordered_map>
int main() {
  std::map<long, long> tree;
  std::list<long> links;
  std::unordered_map<std::string, long> words;
  for (long i = 0; i < 400; i++) {
    tree[i * 7919 % 1009] = i;
    links.push_back(i);
    words["word " + std::to_string(i)] = i;
  }
  for (long i = 0; i < 400; i += 3)
    tree.erase(i * 7919 % 1009);
  for (auto it = tree.begin(); it != tree.end(); ++it)
    std::printf("increment %p\n", static_cast<void *>(it._M_node));
  for (auto it = tree.end(); it != tree.begin(); --it)
    if (it != tree.end())
      std::printf("decrement %p\n", static_cast<void *>(it._M_node));
  for (auto it = links.begin(); it != links.end(); ++it)
    std::printf("hook %p\n", static_cast<void *>(it._M_node));
  for (auto &word : words)
    std::printf("words %s\n", word.first.c_str());
}
"#;

/// Words of the program, and the functions that touch the nodes they are about.
const FUNCTIONS: [(&str, &str); 3] = [
    ("increment", "std::_Rb_tree_increment"),
    ("decrement", "std::_Rb_tree_decrement"),
    ("hook", "std::__detail::_List_node_base::_M_hook"),
];

#[test]
fn walks_and_links_of_the_library_are_in_the_trace() {
    let folder = TempDir::new().expect("a temporary folder");
    fs::write(folder.path().join("program.cpp"), PROGRAM).expect("a file");
    let run = |words: &[&str]| {
        let mut command = memlode();
        command.env("MEMLODE_HOME", installation()).env("COLUMNS", "200").current_dir(folder.path());
        let output = command.args(words).output().expect("memlode runs");
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        stdout(&output)
    };
    run(&["c++", "-O2", "program.cpp", "-o", "program"]);
    let said = run(&["record", "-o", "trace", "--", "./program"]);
    let dump = run(&["dump", "trace"]);
    // A node has four words, a link two.
    let mut touched = BTreeSet::new();
    for line in dump.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let &[_, _, "load" | "store", address, _, _, function, ..] = &columns[..] else { continue };
        let address = u64::from_str_radix(address.trim_start_matches("0x"), 16).expect("an address");
        let found = FUNCTIONS.iter().filter(|(_, name)| function == *name);
        touched.extend(found.map(|(what, _)| (*what, address)));
    }
    let mut nodes = 0;
    for line in said.lines() {
        let (what, node) = line.split_once(' ').expect("two words");
        let Some(node) = node.strip_prefix("0x") else { continue };
        let node = u64::from_str_radix(node, 16).expect("an address");
        let bytes = if what == "hook" { 16 } else { 32 };
        let is_touched = touched.range((what, node)..(what, node + bytes)).next().is_some();
        assert!(is_touched, "no access to the node of: {line}");
        nodes += 1;
    }
    // The way back does not print the first.
    assert_eq!(nodes, 2 * (400 - 134) - 1 + 400);
    let report: Value =
        serde_json::from_str(&run(&["report", "trace", "-m", "generic", "--json"])).expect("JSON");
    let notes = report["trace"]["notes"].to_string();
    let told: Vec<&str> =
        ["_Rb_tree", "_M_hook", "_Hash_bytes"].into_iter().filter(|name| notes.contains(name)).collect();
    assert!(told.is_empty(), "not recorded: {told:?}");
}

/// Long strings have blocks, which programs of older standards have libstdc++ allocate, in functions that it has compiled: in
/// every standard each is an object of the line that made it, and no access is to unknown memory. The call in the loop ends
/// a block of the function, since the strings are destroyed if it throws.
#[test]
fn blocks_of_strings_have_the_line_that_made_them() {
    let folder = TempDir::new().expect("a temporary folder");
    let text = "#include <string>\n\
        #include <vector>\n\
        int main() {\n\
        std::vector<std::string> names;\n\
        names.reserve(3000);\n\
        std::string all = \"longer than what fits: \";\n\
        for (int i = 0; i < 3000; i++) {\n\
        names.push_back(all);\n\
        all[i % 20]++;\n\
        }\n\
        long sum = 0;\n\
        for (auto &name : names) sum += name[7];\n\
        return sum == 1;\n\
        }\n";
    fs::write(folder.path().join("names.cpp"), text).expect("a file");
    for standard in ["-std=c++11", "-std=c++17", "-std=c++20"] {
        let run = |words: &[&str]| {
            let mut command = memlode();
            command.env("MEMLODE_HOME", installation()).current_dir(folder.path()).args(words);
            let output = command.output().expect("memlode runs");
            assert!(output.status.success(), "{words:?}: {}", stderr(&output));
            stdout(&output)
        };
        run(&["c++", standard, "-O2", "-g", "names.cpp", "-o", "names"]);
        run(&["record", "--force", "-o", "trace", "--", "./names"]);
        let report = run(&["report", "trace", "-m", "generic", "--top", "1000", "--json"]);
        let report: Value = serde_json::from_str(&report).expect("JSON");
        assert_eq!(report["coverage"]["object"], 1.0, "{standard}");
        let objects = report["objects"].as_array().expect("objects");
        let is_name = |object: &&Value| object["kind"] == "heap" && object["count"] == 3000;
        let [names] = &objects.iter().filter(is_name).collect::<Vec<_>>()[..] else {
            panic!("{standard}: no class of 3,000 blocks")
        };
        assert_eq!(names["element"], "char", "{standard}");
        assert_eq!(names["path"], serde_json::json!(["main"]), "{standard}");
        assert_eq!(names["called_at"][0][0]["line"], 8, "{standard}: {names}");
    }
}

/// Elements come in the order of the library's hashes; and no library finds the functions here.
#[test]
fn programs_are_what_they_were() {
    let folder = TempDir::new().expect("a temporary folder");
    fs::write(folder.path().join("program.cpp"), PROGRAM).expect("a file");
    let words = |program: &str| {
        let output = Command::new(folder.path().join(program)).output().expect("it runs");
        assert!(output.status.success(), "{program}");
        stdout(&output)
            .lines()
            .filter(|line| line.starts_with("words "))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let mut native = Command::new("clang++-22");
    native.args(["-O2", "program.cpp", "-o", "native"]).current_dir(folder.path());
    assert!(native.status().expect("clang runs").success());
    for (program, options) in [
        ("dynamic", &["-O2"][..]),
        ("static", &["-O0", "-static"]),
        ("library", &["-O2", "-static-libstdc++"]),
        ("lto", &["-O3", "-flto"]),
        ("lld", &["-O1", "-fuse-ld=lld-22"]),
    ] {
        let mut command = memlode();
        command.env("MEMLODE_HOME", installation()).current_dir(folder.path()).arg("c++");
        let output =
            command.args(options).args(["program.cpp", "-o", program]).output().expect("memlode runs");
        assert!(output.status.success(), "{program}: {}", stderr(&output));
        assert_eq!(words(program), words("native"), "{program}");
        let names =
            Command::new("nm").args(["-D", "--defined-only", program]).current_dir(folder.path()).output();
        let names = String::from_utf8_lossy(&names.expect("nm runs").stdout).into_owned();
        assert!(!names.contains("_Rb_tree_"), "{program}: {names}");
    }
}
