use std::fs;
use std::path::Path;
use std::process::Command;

use iced_x86::Mnemonic;

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

/// Loops whose pointers are moved by the size of an element or a row, or whose indices begin at a member; a pointer that is stored and never loaded; and one
/// that is loaded from either of two members.
const LOOPS: &str = r#"
#include <stdlib.h>
struct row { double cells[512]; };
struct bucket { unsigned long key; double values[6]; long hits; };
struct row matrix[512];
struct bucket *table;
struct leaf { struct leaf *left, *right; unsigned key; };
struct order { char note[48]; long price, amount; };
static struct leaf **place(struct leaf **at, unsigned key) {
    while (*at && (*at)->key != key) // leaf.key or leaf or leaf * or leaf.left or leaf.right or leaf.left|right
        at = key < (*at)->key ? &(*at)->left : &(*at)->right;
    return at;
}
__attribute__((noinline)) double hot(unsigned long seed, long rounds, struct leaf *root, struct order *orders) {
    double sum = 0;
    for (long round = 0, all = 0; round < 100; round++, sum += all)
        for (long i = 0; i < 4096; i++)
            if (orders[i].amount > round) // order.amount
                all += orders[i].price; // order.price
    for (int c = 0; c < 512; c++)
        for (int r = 0; r < 512; r++)
            sum += matrix[r].cells[c]; // row.cells[]
    table = calloc(1 << 16, sizeof *table);
    for (; rounds > 0; rounds--, seed = seed * 6364136223846793005u + 1)
        if (table[seed >> 48].key > 9) // bucket.key
            sum++;
    struct leaf **found = place(&root, rounds);
    return *found ? sum : -sum;
}
int main(int argc, char **argv) {
    return (int)hot(argc, argc + (argv[0] != 0), (struct leaf *)argv, calloc(4096, 64));
}
"#;

/// A type that begins as others do, and is larger; an array that goes on behind its object; an object of the frame, in a
/// loop that exceptions lead back to.
const CAST: &str = r#"
#include <stdexcept>
#include <cstdlib>
typedef unsigned short u16;
namespace shop {
struct head { head *next; unsigned char kind; };
struct table { head *next; unsigned char kind; unsigned size; long *cells; };
struct list { long count; long items[]; };
struct order { long price; long amount; };
struct market { long seed; long refused; order last[3]; };
}
__attribute__((noinline)) void place(const shop::order &order, shop::market &market) {
    if (market.last[2].price++ + order.price & 1)
        throw std::runtime_error("odd");
}
__attribute__((noinline)) long hot(shop::head *head, shop::list *list, const u16 *key, long count) {
    long sum = ((shop::table *)head)->size; // ? or shop::table.size
    sum += *((shop::table *)head)->cells; // ? or shop::table.cells or long
    sum += list->items[count]; // shop::list.items[]
    sum += list->items[5]; // shop::list.items[]
    sum += *key; // unsigned short
    sum += head->kind; // shop::head.kind or shop::table.kind
    return sum;
}
__attribute__((noinline)) long run(long count) {
    shop::market market = {count, 0, {}};
    for (long i = 0; i < count; i++) {
        shop::order order{i ^ market.seed, i};
        try {
            place(order, market);
        } catch (const std::runtime_error &) {
            market.refused++; // shop::market.refused or Frame
        }
        market.last[market.seed++ % 3].amount += order.price; // shop::market.seed or shop::market.last[].amount or shop::order.amount or shop::order.price or shop::market or Frame or UnknownPointer
    }
    return market.refused + market.last[count & 1].price;
}
int main(int argc, char **argv) {
    shop::head first{nullptr, 1};
    shop::table table{&first, 1, 2, (long *)argv};
    auto *list = (shop::list *)calloc(9, 8);
    u16 key = argc;
    return int(hot((shop::head *)&table, list, &key, argc) + run(argc));
}
"#;

const PARTS: &str = r#"
#include <stdlib.h>
struct node { struct node *next; long key; };
static struct { long count; struct node *first; long sum; } all;
__attribute__((noinline)) void add(long key) {
    struct node *node = malloc(sizeof *node);
    node->key = key;
    node->next = all.first;
    all.first = node;
    all.count++;
}
__attribute__((noinline)) long hot(long key) {
    struct node *node = all.first; // struct {p.c:4}.first
    key += node->key; // node.key
    return key + all.count; // struct {p.c:4}.count
}
int main(int argc, char **argv) {
    add(argc);
    return (int)hot(argc + (argv[0] != 0));
}
"#;

fn built(folder: &Path, text: &str, compiler: &str, options: &[&str]) -> ProgramFile {
    let source = folder.join(if compiler.contains("++") { "p.cpp" } else { "p.c" });
    let program = folder.join("p");
    fs::write(&source, text).unwrap();
    let mut command = Command::new(compiler);
    command.arg("-g").args(options).arg(&source).arg("-o").arg(&program);
    assert!(command.status().unwrap().success());
    ProgramFile::read(&program).unwrap()
}

/// "type.member" of all that memory instructions of a function touch, with the line. Those that save or restore something
/// on the stack are left out: they have a reason of their own.
fn touched(program: &ProgramFile, function: &str) -> Vec<(u32, String)> {
    let is_it = |name: &str| name == function || name.starts_with(&format!("_Z{}{function}", function.len()));
    let mut typing = Typing::default();
    let mut found = Vec::new();
    // gcc has code that seldom runs elsewhere, under a name of its own.
    for symbol in program.functions().iter().filter(|symbol| is_it(&symbol.name)) {
        let mut at = symbol.address;
        while at < symbol.address + symbol.bytes {
            let access = typing.at(program, at);
            let line = program.debug().unwrap().frames(at).unwrap()[0].position.as_ref().unwrap().line;
            let Some(instruction) = Instruction::decode(program.bytes_at(at, 15), at) else { break };
            at = instruction.next();
            let saves = matches!(
                instruction.0.mnemonic(),
                Mnemonic::Push | Mnemonic::Pop | Mnemonic::Call | Mnemonic::Ret | Mnemonic::Leave
            );
            let is_told = access.data == Err(Untyped::Stack);
            assert!(saves || !is_told, "{:x}", access.address);
            if is_told {
                continue;
            }
            let word = match access.data {
                Ok(data) => {
                    let parts = [data.kind, data.member];
                    parts.into_iter().flatten().collect::<Vec<_>>().join(".")
                }
                Err(why) => format!("{why:?}"),
            };
            found.push((line, word));
        }
    }
    found
}

/// Lines of a source, with what their comments say.
fn commented(source: &str) -> Vec<(u32, &str)> {
    let numbered = (1..).zip(source.lines());
    numbered.filter_map(|(number, line)| Some((number, line.split_once(" // ")?.1))).collect()
}

#[test]
fn pointers_that_loops_move_and_that_are_stored_keep_their_type() {
    let expected = commented(LOOPS);
    assert_eq!(expected.len(), 5);
    // gcc counts its rows from the end of the matrix: that address is in no variable.
    let is_seen = |compiler: &str, data: &str| compiler != "gcc" || !data.starts_with("row");
    for compiler in ["clang-22", "gcc"] {
        for options in [["-O1"], ["-O2"], ["-O3"]] {
            let folder = tempfile::tempdir().unwrap();
            let program = built(folder.path(), LOOPS, compiler, &options);
            let found = touched(&program, "hot");
            for (line, data) in expected.iter().filter(|(_, data)| is_seen(compiler, data)) {
                // Calls, spills and constants are no access of the source.
                let besides = ["NoMemory", "Frame", "Static", "double"];
                let here = found.iter().filter(|(at, word)| at == line && !besides.contains(&&**word));
                let words: Vec<&String> = here.map(|(_, word)| word).collect();
                let may_be: Vec<&str> = data.split(" or ").collect();
                let are_all = words.iter().all(|word| may_be.contains(&&***word));
                let are_all = are_all && words.iter().any(|word| word == &may_be[0]);
                assert!(are_all, "{compiler} {options:?}: line {line} touches {data}: {found:#?}");
            }
        }
    }
}

#[test]
fn a_cast_pointer_is_not_its_old_type() {
    let expected = commented(CAST);
    assert_eq!(expected.len(), 8);
    for compiler in ["clang++-22", "g++"] {
        for options in [["-O1"], ["-O2"]] {
            let folder = tempfile::tempdir().unwrap();
            let program = built(folder.path(), CAST, compiler, &options);
            let found: Vec<(u32, String)> =
                ["hot", "run"].iter().flat_map(|function| touched(&program, function)).collect();
            assert!(
                found.iter().any(|(_, word)| word.starts_with("shop::market.")),
                "{compiler}: {found:#?}"
            );
            for (line, data) in &expected {
                let here = |at: &&(u32, String)| at.0 == *line && at.1 != "NoMemory";
                let words: Vec<&str> = found.iter().filter(here).map(|(_, word)| word.as_str()).collect();
                let may_be: Vec<&str> = data.split(" or ").collect();
                // What nothing tells is said to be unknown.
                let is_it =
                    |word: &&str| may_be.contains(word) || (may_be[0] == "?" && *word == "UnknownPointer");
                assert!(
                    !words.is_empty() && words.iter().all(is_it),
                    "{compiler} {options:?}: line {line} touches {data}: {found:#?}"
                );
            }
        }
    }
}

#[test]
fn members_are_those_of_the_source() {
    let expected = commented(PROGRAM);
    assert_eq!(expected.len(), 8);
    for compiler in ["clang-22", "gcc"] {
        let others = [&["-O2", "-fno-pie", "-no-pie"][..], &["-O2", "-fdebug-types-section"]];
        for options in [&["-O0"][..], &["-O1"], &["-O2"], &["-Os"], others[0], others[1]] {
            let folder = tempfile::tempdir().unwrap();
            let program = built(folder.path(), PROGRAM, compiler, options);
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

/// Elements of arrays that have a descriptor, of Fortran.
#[test]
fn descriptors_lead_to_elements() {
    let fortran = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fortran");
    let source = fs::read_to_string(fortran.join("grids.f90")).unwrap();
    let expected: Vec<(u32, &str)> = (1..)
        .zip(source.lines())
        .filter_map(|(line, text)| Some((line, text.split_once(" ! ")?.1)))
        .collect();
    assert_eq!(expected.len(), 5);
    for options in ["-O1", "-O2", "-Os"] {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("grids.so");
        let mut command = Command::new("clang-22");
        command
            .args([options, "-w", "-fPIC", "-shared"])
            .arg(fortran.join("grids.ll"))
            .arg("-o")
            .arg(&program);
        assert!(command.status().unwrap().success());
        let found = touched(&ProgramFile::read(&program).unwrap(), "_QMgridsPhot");
        for (line, data) in &expected {
            let words = || found.iter().filter(|at| at.0 == *line).map(|(_, word)| word.as_str());
            for data in data.split(" and ") {
                assert!(
                    words().any(|word| word == data),
                    "{options}: line {line} touches {data}: {found:#?}"
                );
            }
        }
    }
}

/// A structure whose parts the optimiser has put at places of their own.
#[test]
fn parts_of_a_static_variable_are_the_variables() {
    let folder = tempfile::tempdir().unwrap();
    let program = built(folder.path(), PARTS, "clang-22", &["-O2"]);
    let found = touched(&program, "hot");
    for (line, data) in commented(PARTS) {
        assert!(found.contains(&(line, data.to_owned())), "line {line} touches {data}: {found:#?}");
    }
}

/// A type under two names, in a list whose end is null; an array at a multiple of a masked number; bytes that are read
/// several at a time, and larger numbers of which a part is; the result of a library's function.
const NAMES: &str = r#"
#include <ctype.h>
typedef struct text { struct text *next; long hash; unsigned char length; } text;
struct pool { long mask; text **slots; struct { long a, b; } pairs[64]; };
__attribute__((noinline)) long hot(struct pool *pool, const unsigned char *bytes, const unsigned short *tags, unsigned at) {
    long sum = 0;
    text **list = &pool->slots[at & pool->mask]; // pool.slots or pool.mask
    for (text *one = *list; one; one = one->next) { // text.next or text * or pool.slots
        sum += one->hash; // text.hash
        sum += one->length; // text.length
    }
    sum += pool->pairs[at >> 7 & 63].b; // pool.pairs[].b
    sum += *(const unsigned *)(bytes + 3); // unsigned char
    sum += *((const unsigned char *)tags + at); // ?
    return sum;
}
__attribute__((noinline)) int called(int letter) {
    return tolower(letter & 127); // int or int *
}
int main(int argc, char **argv) {
    text one = {0, argc, 1};
    text *slots[] = {&one, &one};
    struct pool pool = {1, slots, {{1, 2}}};
    return (int)hot(&pool, (unsigned char *)argv[0], (unsigned short *)argv[0], argc) + called(argc);
}
"#;

#[test]
fn types_under_two_names_null_and_numbers_in_bytes() {
    let expected = commented(NAMES);
    assert_eq!(expected.len(), 8);
    for compiler in ["clang-22", "gcc"] {
        for options in [["-O1"], ["-O2"], ["-O3"]] {
            let folder = tempfile::tempdir().unwrap();
            let program = built(folder.path(), NAMES, compiler, &options);
            let found: Vec<(u32, String)> =
                ["hot", "called"].iter().flat_map(|function| touched(&program, function)).collect();
            for (line, data) in &expected {
                let here = found.iter().filter(|(at, word)| at == line && word != "NoMemory");
                let words: Vec<&str> = here.map(|(_, word)| word.as_str()).collect();
                let may_be: Vec<&str> = data.split(" or ").collect();
                let is_it =
                    |word: &&str| may_be.contains(word) || (may_be[0] == "?" && *word == "UntypedPointer");
                // The function's code may be elsewhere.
                let is_there = may_be[0] == "int" || !words.is_empty();
                assert!(
                    is_there && words.iter().all(is_it),
                    "{compiler} {options:?}: line {line} touches {data}: {found:#?}"
                );
            }
        }
    }
}

/// A walk over an array by an index that counts from a member on, of which debug information says that it is a pointer.
const ORDERS: &str = r#"
use std::io::Write;
#[derive(Clone)]
pub struct Order { price: u64, amount: u64, note: [u8; 48] }
fn total(orders: &[Order], rate: u64) -> u64 {
    orders
        .iter()
        .filter(|order| order.amount > 3) // the amount
        .map(|order| order.price * rate) // the price
        .sum()
}
#[unsafe(no_mangle)]
pub fn hot() -> u64 {
    let orders: Vec<Order> =
        (0..400_000u64).map(|n| Order { price: n * 7, amount: n % 11, note: [0; 48] }).collect();
    let mut all = 0u64;
    for rate in 0..200 { all = all.wrapping_add(total(&orders, rate)); }
    writeln!(std::io::stdout(), "{all} {}", orders[7].note[3]).unwrap();
    all
}
fn main() { std::hint::black_box(hot()); }
"#;

#[test]
fn an_index_is_no_pointer_whatever_is_said_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("p.rs"), folder.path().join("p"));
    fs::write(&source, ORDERS).unwrap();
    let mut command = Command::new("rustc");
    command.args(["-O", "-g", "--edition=2024"]).arg(&source).arg("-o").arg(&program);
    assert!(command.status().unwrap().success());
    let found = touched(&ProgramFile::read(&program).unwrap(), "hot");
    for (comment, member) in [("// the amount", "p::Order.amount"), ("// the price", "p::Order.price")] {
        let line = 1 + ORDERS.lines().position(|line| line.ends_with(comment)).unwrap() as u32;
        let words: Vec<&str> =
            found.iter().filter(|(at, _)| *at == line).map(|(_, word)| word.as_str()).collect();
        assert!(!words.contains(&"p::Order.note[]"), "{line}: {found:?}");
        // The library adds up what the price is multiplied with.
        let is_there = words.contains(&member) || found.iter().any(|(_, word)| word == member);
        assert!(is_there, "{line} touches {member}: {found:?}");
    }
}

/// Arrays of numbers have no members: the variable is their name, also where a pointer walks over
/// them; what the thread has of its own; and an object whose index is a product that nothing
/// explains.
const ARRAYS: &str = r#"
double first[4096], second[4096], third[4096];
struct slot { long hits, misses; };
static __thread struct slot slots[64];
static __thread long rounds;
struct leaf { int cold, warm; };
struct outer { char name[64]; struct leaf leaves[2][4]; };
__attribute__((noinline)) double hot(unsigned at, long n, struct outer *outers) {
    double sum = 0;
    for (long i = 0; i < n; i++)
        sum += first[i]; // first or UnknownPointer
    for (long i = 0; i < n; i++)
        second[i] = sum; // second
    for (double *last = first + 4096; last > first;)
        sum += *--last; // ? or first or double or UnknownPointer
    sum += third[at & 4095]; // third
    slots[at & 63].misses++; // slot.misses
    rounds += at; // rounds
    sum += outers[at % 1500].leaves[at & 1][at >> 1 & 3].warm; // ? or outer or outer.leaves[].warm
    return sum;
}
int main(int argc, char **argv) {
    return (int)hot(argc, argc, (struct outer *)argv);
}
"#;

#[test]
fn arrays_without_members_are_known_by_their_variables() {
    let expected = commented(ARRAYS);
    assert_eq!(expected.len(), 7);
    for compiler in ["clang-22", "gcc"] {
        for options in [&["-O1"][..], &["-O2"], &["-O3"], &["-O2", "-no-pie", "-fno-pie"]] {
            let folder = tempfile::tempdir().unwrap();
            let program = built(folder.path(), ARRAYS, compiler, options);
            let symbol = program.functions().iter().find(|symbol| symbol.name == "hot").unwrap().clone();
            let code = flow::decode(program.bytes_at(symbol.address, symbol.bytes as usize), symbol.address);
            let mut typing = Typing::default();
            let mut found: Vec<(u32, String)> = Vec::new();
            for instruction in &code {
                let at = instruction.address();
                let line = program.debug().unwrap().frames(at).unwrap()[0].position.as_ref().unwrap().line;
                let word = match typing.at(&program, at).data {
                    Ok(TypedData { kind: Some(kind), member: Some(member), .. }) => {
                        format!("{kind}.{member}")
                    }
                    Ok(TypedData { variable: Some(variable), .. }) => variable,
                    Ok(data) => data.kind.unwrap_or_default(),
                    Err(why) => format!("{why:?}"),
                };
                found.push((line, word));
            }
            for (line, data) in &expected {
                let besides = ["NoMemory", "Frame", "Static", "Stack"];
                let here = found.iter().filter(|(at, word)| at == line && !besides.contains(&&**word));
                let words: Vec<&str> = here.map(|(_, word)| word.as_str()).collect();
                let may_be: Vec<&str> = data.split(" or ").collect();
                let are_all = words.iter().all(|word| may_be.contains(word));
                assert!(
                    are_all && words.iter().any(|word| [*word, "?"].contains(&may_be[0])),
                    "{compiler} {options:?}: line {line} touches {data}: {found:#?}"
                );
            }
        }
    }
}

#[test]
fn without_debug_information_the_reason_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let data_of = |program: &ProgramFile, code: &[Instruction]| -> Vec<_> {
        code.iter().map(|instruction| Typing::default().at(program, instruction.address()).data).collect()
    };
    let program = built(folder.path(), PROGRAM, "gcc", &["-O2", "-g0"]);
    let symbol = program.functions().iter().find(|symbol| symbol.name == "hot").unwrap().clone();
    let code = flow::decode(program.bytes_at(symbol.address, symbol.bytes as usize), symbol.address);
    let stripped = built(folder.path(), PROGRAM, "gcc", &["-O2", "-g0", "-s"]);
    // Of a function without a name the tables for exceptions tell where it begins.
    for program in [program, stripped] {
        let found = data_of(&program, &code);
        assert!(found.contains(&Err(Untyped::NoDebugInformation)), "{found:?}");
        assert!(found.iter().all(|data| data.is_err()));
        let is_return = |instruction: &Instruction| instruction.0.mnemonic() == Mnemonic::Ret;
        let returns = code.iter().zip(&found).filter(|(instruction, _)| is_return(instruction));
        let returns: Vec<_> = returns.map(|(_, data)| data).collect();
        assert!(!returns.is_empty() && returns.iter().all(|data| **data == Err(Untyped::Stack)), "{found:?}");
    }
    let program = built(folder.path(), PROGRAM, "gcc", &["-O2", "-g"]);
    assert_eq!(Typing::default().at(&program, 1).data, Err(Untyped::NoFunction));
}
