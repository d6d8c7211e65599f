use std::fs;
use std::path::Path;
use std::process::Command;

use super::*;

/// Each line of `hot` touches the data that its comment names; only registers lead there. If a
/// compiler puts a member's offset into an index, the member is not known, and none is reported.
const PROGRAM: &str = r#"
struct inner { int low, high; };
struct node { struct node *next; long key; struct inner pair; char *text; struct inner many[4]; };
struct list { long count; struct node *head; void *any; };
static struct node table[100];
long plain;
__attribute__((noinline)) long hot(struct list *list, long at, struct node *array, int count) {
    long sum = list->count; // list.count
    for (struct node *node = list->head; node; node = node->next) { // node.next
        sum += node->key; // node.key
        sum += node->pair.high; // node.pair.high
        sum += node->text[0]; // char
    }
    for (int i = 0; i < count; i++)
        sum += array[i].many[at].low; // node.many[].low or node
    sum += table[at].key; // node.key
    sum += plain; // long
    return sum;
}
int main(int argc, char **argv) {
    struct node one = {0, argc, {1, 2}, argv[0], {{3, 4}}};
    struct list list = {1, &one, argv};
    return (int)hot(&list, argc & 3, table, argc);
}
"#;

fn built(folder: &Path, compiler: &str, options: &[&str]) -> ProgramFile {
    let (source, program) = (folder.join("p.c"), folder.join("p"));
    fs::write(&source, PROGRAM).unwrap();
    let mut command = Command::new(compiler);
    command.arg("-g").args(options).arg(&source).arg("-o").arg(&program);
    assert!(command.status().unwrap().success());
    ProgramFile::read(&program).unwrap()
}

/// "type.member" of all that memory instructions of a function touch, with the line.
fn touched(program: &ProgramFile, function: &str) -> Vec<(u32, String)> {
    let symbol = program.functions().iter().find(|symbol| symbol.name == function).unwrap();
    let mut typing = Typing::default();
    let mut found = Vec::new();
    let mut at = symbol.address;
    while at < symbol.address + symbol.bytes {
        let access = typing.at(program, at);
        let line = program.debug().unwrap().frames(at).unwrap()[0].position.as_ref().unwrap().line;
        let Some(instruction) = Instruction::decode(program.bytes_at(at, 15), at) else { break };
        at = instruction.next();
        let word = match access.data {
            Ok(data) => {
                let parts = [data.kind, data.member];
                // gcc's name for it.
                parts.into_iter().flatten().collect::<Vec<_>>().join(".").replace("long int", "long")
            }
            Err(why) => format!("{why:?}"),
        };
        found.push((line, word));
    }
    found
}

#[test]
fn members_are_those_of_the_source() {
    let expected: Vec<(u32, &str)> = (1..)
        .zip(PROGRAM.lines())
        .filter_map(|(number, line)| Some((number, line.split_once(" // ")?.1)))
        .collect();
    assert_eq!(expected.len(), 8);
    for compiler in ["clang-22", "gcc"] {
        for options in [&["-O0"][..], &["-O1"], &["-O2"], &["-Os"], &["-O2", "-fno-pie", "-no-pie"]] {
            let folder = tempfile::tempdir().unwrap();
            let program = built(folder.path(), compiler, options);
            let found = touched(&program, "hot");
            for (line, data) in &expected {
                let here = |at: &&(u32, String)| at.0 == *line;
                let may_be: Vec<&str> = data.split(" or ").collect();
                let words = || found.iter().filter(here).map(|(_, word)| word.as_str());
                assert!(
                    words().any(|word| may_be.contains(&word))
                        && !words().any(|word| word == "node.pair.low"),
                    "{compiler} {options:?}: line {line} touches {data}: {found:#?}"
                );
            }
            // At -O0 the frame has variables of its own; optimised code keeps nothing there.
            let named = found
                .iter()
                .filter(|(_, word)| word.contains('.') || ["char", "long", "node"].contains(&word.as_str()));
            let memory = found.iter().filter(|(_, word)| word != "NoMemory" && word != "Frame").count();
            if options != ["-O0"] {
                assert!(10 * named.count() >= 9 * memory, "{compiler} {options:?}: {found:#?}");
            }
        }
    }
}

#[test]
fn without_debug_information_the_reason_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let program = built(folder.path(), "gcc", &["-O2", "-g0", "-s"]);
    let mut typing = Typing::default();
    let entry = typing.at(&program, program.entry());
    assert_eq!(entry.data, Err(Untyped::NoFunction));
    let program = built(folder.path(), "gcc", &["-O2", "-g0"]);
    let symbol = program.functions().iter().find(|symbol| symbol.name == "hot").unwrap();
    let code = flow::decode(program.bytes_at(symbol.address, symbol.bytes as usize), symbol.address);
    let found: Vec<_> =
        code.iter().map(|instruction| Typing::default().at(&program, instruction.address()).data).collect();
    assert!(found.contains(&Err(Untyped::NoDebugInformation)), "{found:?}");
    assert!(found.iter().all(|data| data.is_err()));
}
