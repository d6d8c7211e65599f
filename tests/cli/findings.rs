//! Findings by name: the calls of small functions, and which part of a type is in use.

use serde_json::Value;

use crate::reported::Reported;
use crate::sim::Recorded;
use crate::waiting::MACHINE;

fn evidence<'f>(finding: &'f Value, kind: &str) -> Option<&'f Value> {
    finding["evidence"].as_array().expect("a list").iter().find(|fact| fact["kind"] == kind)
}

/// Jumps through an array so that every access misses, three times by one call of an accessor and once by another.
const ACCESSORS: &str = "\
#include <stdio.h>
#include <stdlib.h>
struct item { long key; char payload[56]; };
enum { ITEMS = 300000 };
static inline __attribute__((always_inline)) long key(const struct item *item) { return item->key; }
static inline __attribute__((always_inline)) long larger(const struct item *items, long at, long best) {
  long other = key(&items[at]);
  return other > best ? other : best;
}
int main(void) {
  struct item *items = malloc(ITEMS * sizeof *items);
  for (long i = 0; i < ITEMS; i++) items[i].key = i;
  long best = 0;
  for (long round = 0; round < 3; round++)
    for (long i = 0; i < ITEMS; i++)
      best = larger(items, i * 7919 % ITEMS, best);
  for (long i = 0; i < ITEMS; i++)
    best = larger(items, i * 7919 % ITEMS, best);
  printf(\"%ld\\n\", best);
}
";

#[test]
fn calls_of_small_functions_have_their_shares() {
    let program = Reported::new(ACCESSORS);
    let findings = program.findings();
    let finding = &findings[0];
    assert_eq!((&finding["line"], &finding["function"]), (&5.into(), &"key".into()), "{finding}");
    let callers = evidence(finding, "callers").expect("callers");
    let through = callers["through"].as_array().expect("a list");
    assert_eq!(through.len(), 1);
    assert_eq!((&through[0]["line"], &through[0]["function"]), (&7.into(), &"larger".into()));
    let divided = callers["divided"].as_array().expect("a list");
    let lines: Vec<_> = divided.iter().map(|caller| caller["call"]["line"].as_u64()).collect();
    assert_eq!(lines, [Some(16), Some(18)]);
    for (caller, share) in divided.iter().zip([0.75, 0.25]) {
        assert_eq!(caller["call"]["function"], "main");
        assert!((caller["share"].as_f64().expect("a share") - share).abs() < 0.02, "{callers}");
    }
    let text = program.report(&[]);
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected =
        "called at program.c:7 larger, and that at program.c:16 main (75%), program.c:18 main (25%)";
    assert!(said.contains(expected), "{text}");
}

/// Three functions touch three members as often as each other, one of them one element of an array; the rest of the type is
/// touched once.
const MEMBERS: &str = "\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct cell { long hot; long other; int grid[4]; char cold[32]; };
enum { CELLS = 300000, ROUNDS = 5 };
static struct cell *cells;
static struct cell copy;
__attribute__((noinline)) long hot(long i) { return cells[i].hot; }
__attribute__((noinline)) long other(long i) { return cells[i].other; }
__attribute__((noinline)) long grid(long i) { return cells[i].grid[1]; }
__attribute__((noinline)) long whole(long i) { copy = cells[i]; return copy.cold[i & 31]; }
int main(void) {
  cells = malloc(CELLS * sizeof *cells);
  for (long i = 0; i < CELLS; i++) {
    cells[i].hot = cells[i].other = i;
    for (int j = 0; j < 4; j++) cells[i].grid[j] = j;
    cells[i].cold[0] = 1;
  }
  long sum = 0;
  for (long round = 0; round < ROUNDS; round++) {
    for (long i = 0; i < CELLS; i++) sum += hot(i * 7919 % CELLS);
    for (long i = 0; i < CELLS; i++) sum += other(i * 7919 % CELLS);
    for (long i = 0; i < CELLS; i++) sum += grid(i * 7919 % CELLS);
    WHOLE
  }
  printf(\"%ld\\n\", sum);
}
";

#[test]
fn a_type_is_divided_once_for_all_its_findings() {
    let program = Reported::new(&MEMBERS.replace("WHOLE", ""));
    let findings = program.findings();
    let of_type: Vec<&Value> = findings.iter().filter(|finding| finding["type"] == "cell").collect();
    let functions: Vec<&str> = of_type.iter().filter_map(|finding| finding["function"].as_str()).collect();
    assert!(["hot", "other", "grid"].iter().all(|name| functions.contains(name)), "{functions:?}");
    for finding in &of_type {
        let density = evidence(finding, "density").expect("a density");
        assert_eq!((&density["used_bytes"], &density["type_bytes"]), (&32.into(), &64.into()), "{density}");
        let mut members: Vec<&str> =
            density["members"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        members.sort_unstable();
        assert_eq!(members, ["grid[]", "hot", "other"]);
    }
    let edits: Vec<_> = of_type.iter().filter(|finding| !finding["edit"].is_null()).collect();
    let [first] = &edits[..] else { panic!("one change: {findings:?}") };
    assert_eq!(first["edit"]["members"], serde_json::json!([first["member"]]), "each has a loop of its own");
    let text = program.report(&[]);
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in [
        "32 of the 64 bytes of each cell are used while it is in L3: ",
        ", and in the mean 9 of the 64 bytes of a line; ",
        " is mostly used without ",
    ] {
        assert!(said.contains(expected), "{expected}: {text}");
    }
}

/// All members are used, but each by a loop of its own.
#[test]
fn members_that_loops_use_in_turn_are_told_by_the_line() {
    let program = Reported::new(
        "\
#include <stdio.h>
#include <stdlib.h>
struct point { double x, y, z, w; };
enum { POINTS = 300000 };
int main(void) {
  struct point *points = malloc(POINTS * sizeof *points);
  for (long i = 0; i < POINTS; i++) points[i] = (struct point){1, 2, 3, 4};
  double sum = 0;
  for (long round = 0; round < 5; round++) {
    for (long i = 0; i < POINTS; i++) sum += points[i].x;
    for (long i = 0; i < POINTS; i++) sum += points[i].y;
    for (long i = 0; i < POINTS; i++) sum += points[i].z;
    for (long i = 0; i < POINTS; i++) sum += points[i].w;
  }
  printf(\"%g\\n\", sum);
}
",
    );
    let text = program.report(&[]);
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // By hand: of 21 times that a line is fetched, it is used whole once, and then two doubles of it.
    let expected = "in the mean 19 of the 64 bytes of a line of point are used while it is in L3: ";
    assert!(said.contains(expected), "{text}");
}

/// Two members are used by one loop that runs often, two by another, and one by both.
#[test]
fn members_that_one_loop_uses_stay_together() {
    let program = Reported::new(
        "\
#include <stdio.h>
#include <stdlib.h>
struct body { double x, dx, y, dy, mass, cold[3]; };
enum { BODIES = 100000 };
static struct body *bodies;
__attribute__((noinline)) void across(void) {
  for (long i = 0; i < BODIES; i++) bodies[i].x += bodies[i].dx / bodies[i].mass;
}
__attribute__((noinline)) void upwards(void) {
  for (long i = 0; i < BODIES; i++) bodies[i].y += bodies[i].dy / bodies[i].mass;
}
int main(void) {
  bodies = malloc(BODIES * sizeof *bodies);
  for (long i = 0; i < BODIES; i++) bodies[i] = (struct body){1, 2, 3, 4, 5, {6, 7, 8}};
  for (long round = 0; round < 4; round++) {
    across();
    across();
    upwards();
  }
  printf(\"%g\\n\", bodies[BODIES / 2].x + bodies[BODIES / 3].y);
}
",
    );
    let findings = program.findings();
    let of = |function: &str| {
        let finding = findings.iter().find(|finding| finding["function"] == function).expect("a finding");
        let density = evidence(finding, "density").expect("a density");
        let mut members: Vec<&str> =
            density["used_with"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        members.sort_unstable();
        (finding, members)
    };
    let (across, together) = of("across");
    assert_eq!(together, ["dx", "mass", "x"], "{across}");
    assert!(!across["edit"].is_null(), "{across}");
    assert_eq!(of("upwards").1, ["dy", "mass", "y"]);
    let said = program.report(&[]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(" are mostly used without "), "{said}");
}

/// One member is used of all lines that are fetched, another as often, but of a few that stay: counts cannot tell that it is left alone
/// of most.
#[test]
fn a_member_that_is_used_often_but_of_few_lines_is_left_alone() {
    let program = Reported::new(
        "\
#include <stdio.h>
#include <stdlib.h>
struct entry { long key; long hits; char rest[48]; };
enum { ENTRIES = 200000 };
int main(void) {
  struct entry *entries = calloc(ENTRIES, sizeof *entries);
  long sum = 0;
  for (long round = 0; round < 5; round++)
    for (long i = 0; i < ENTRIES; i++) {
      sum += entries[i * 7919 % ENTRIES].key;
      entries[i % 16].hits += sum;
    }
  printf(\"%ld\\n\", sum);
}
",
    );
    let findings = program.findings();
    let density = findings.iter().find_map(|finding| evidence(finding, "density")).expect("a density");
    assert_eq!(density["used_bytes"], 8, "{density}");
    // Those few lines may be among the followed ones, or not.
    assert!((8..=9).contains(&density["line_used_bytes"].as_u64().expect("bytes")), "{density}");
    assert_eq!(density["members"], serde_json::json!(["key"]));
    assert!(density["stays"].as_u64().is_some_and(|stays| stays > 1_000), "{density}");
}

/// Objects that end in a flexible array member have no size to speak of, and are not divided.
#[test]
fn a_flexible_array_member_is_not_moved() {
    let findings = Reported::new(
        "\
#include <stdio.h>
#include <stdlib.h>
struct node { long score; long height; struct { struct node *next; long span; } level[]; };
enum { NODES = 60000 };
static struct node *nodes[NODES];
int main(void) {
  for (long i = 0; i < NODES; i++) {
    nodes[i] = malloc(sizeof **nodes + 4 * sizeof nodes[0]->level[0]);
    nodes[i]->score = nodes[i]->height = nodes[i]->level[0].span = i;
  }
  long sum = 0;
  for (long round = 0; round < 8; round++)
    for (long i = 0; i < NODES; i++) sum += nodes[i * 7919 % NODES]->level[0].span;
  printf(\"%ld\\n\", sum + nodes[sum & 1]->score);
}
",
    )
    .findings();
    assert!(findings.iter().any(|finding| finding["type"] == "node"), "{findings:?}");
    for finding in &findings {
        assert!(evidence(finding, "density").is_none() && finding["edit"].is_null(), "{finding}");
    }
}

/// A table that the last level holds is filled once, and then jumped through. Fresh memory costs next to nothing: so the stays that count
/// are those in the second level, although the misses of the last one are as many as its lines.
#[test]
fn fresh_memory_does_not_choose_the_level() {
    let program = Reported::new(
        "\
#include <stdio.h>
#include <stdlib.h>
struct slot { long key; long value; char rest[48]; };
enum { SLOTS = 1 << 16, ROUNDS = 4 };
int main(void) {
  struct slot *slots = calloc(SLOTS, sizeof *slots);
  for (long i = 0; i < SLOTS; i++) {
    slots[i].key = i;
    slots[i].value = -i;
  }
  long sum = 0;
  for (long round = 0; round < ROUNDS; round++)
    for (long i = 0; i < SLOTS; i++) sum += slots[i * 7919 % SLOTS].key;
  printf(\"%ld\\n\", sum + slots[sum & 1].value);
}
",
    );
    let findings = program.findings();
    let density = findings.iter().find_map(|finding| evidence(finding, "density")).expect("a density");
    assert_eq!(density["level"], "L2", "{density}");
    // By hand: both are used of what is filled, and then one, four times.
    assert_eq!(density["line_used_bytes"], 10, "{density}");
    assert_eq!(density["used_with"], serde_json::json!(["key"]), "{density}");
}

/// Each loop uses one member of a cell. By hand: 33 bytes are used of what is fetched to be filled, and then 8, 8 or 4. A simulation
/// sees that, and a report as much, of the lines that it follows.
#[test]
fn a_simulation_says_what_was_used_of_the_lines_that_were_fetched() {
    let program = Reported::new(&MEMBERS.replace("WHOLE", ""));
    let words = ["sim", "a trace", "-m", "generic", "--rules", "lru", "--json"];
    let sim: Value = serde_json::from_str(&program.run(&words)).expect("JSON");
    let types = sim["types"].as_array().expect("types");
    let cell = types.iter().find(|row| row["type"] == "cell").expect("a row");
    let causes = cell["causes"].as_array().expect("causes");
    let level = causes.iter().find(|level| level["level"] == "L2").expect("a level");
    let [fetched, unused] = ["fetched_bytes", "unused_bytes"].map(|key| level[key].as_u64().expect("bytes"));
    let cells = 300_000;
    // A loop ends with a few cells that the next begins with.
    let is_about = |found: u64, expected: u64| found.abs_diff(expected) * 1000 <= expected;
    assert!(is_about(fetched, 16 * 64 * cells), "{level}");
    assert!(is_about(fetched - unused, (33 + 5 * (8 + 8 + 4)) * cells), "{level}");
    let findings = program.findings();
    let density =
        findings.iter().filter(|finding| finding["type"] == "cell").find_map(|one| evidence(one, "density"));
    let density = density.expect("a density");
    assert_eq!((&density["line_bytes"], &density["line_used_bytes"]), (&64.into(), &9.into()), "{density}");
}

/// Looks up values by an index that was read before, and walks a list that lies in no order.
const JUMPS: &str = "\
#include <stdio.h>
#include <stdlib.h>
struct node { struct node *next; long value; char rest[48]; };
enum { NODES = 1 << 17, ROUNDS = 3 };
static int order[NODES];
static struct node *nodes;
__attribute__((noinline)) static long gather(void) {
  long sum = 0;
  for (long i = 0; i < NODES; i++) {
    unsigned long mixed = (unsigned long)nodes[order[i]].value;
    mixed ^= mixed << 13, mixed ^= mixed >> 7, mixed ^= mixed << 17;
    mixed *= 0x9e3779b97f4a7c15, mixed ^= mixed >> 31, mixed *= 0xbf58476d1ce4e5b9, mixed ^= mixed >> 29;
    mixed ^= mixed << 13, mixed ^= mixed >> 7, mixed ^= mixed << 17;
    sum += (long)(mixed & 255);
  }
  return sum;
}
__attribute__((noinline)) static long chase(void) {
  long sum = 0;
  for (struct node *node = &nodes[order[0]]; node; node = node->next) sum += node->value;
  return sum;
}
int main(void) {
  nodes = malloc(NODES * sizeof *nodes);
  for (int i = 0; i < NODES; i++) {
    order[i] = (int)(i * 48271l % NODES);
    nodes[i].value = i;
  }
  for (int i = 0; i < NODES; i++) nodes[order[i]].next = i + 1 < NODES ? &nodes[order[i + 1]] : NULL;
  long sum = 0;
  for (int round = 0; round < ROUNDS; round++) sum += gather() + chase();
  printf(\"%ld\\n\", sum);
}
";

/// An address that is known turns before can be fetched ahead: as far as the other turns' work takes memory's latency. One that comes out of
/// the load before is not known any earlier.
#[test]
fn what_can_be_prefetched_is_told_with_how_far_ahead() {
    let program = Reported::new(JUMPS);
    let findings = program.findings();
    let of = |function: &str| {
        let finding = findings.iter().find(|finding| finding["function"] == function);
        finding.unwrap_or_else(|| panic!("no finding in {function}: {findings:?}"))
    };
    let distance = evidence(of("gather"), "prefetch").expect("a distance");
    let [ahead, latency, work] = ["accesses_ahead", "latency_cycles", "access_cycles"]
        .map(|name| distance[name].as_f64().unwrap_or_else(|| panic!("{name} of {distance}")));
    assert_eq!(latency, 250.0, "the generic machine's memory");
    // Some thirty instructions, of 0.3 cycles each.
    assert!(work > 5.0 && work < 20.0, "{distance}");
    assert!((ahead - latency / work).abs() <= 1.0 + 0.05 * ahead, "{distance}");
    assert!(evidence(of("chase"), "prefetch").is_none(), "{}", of("chase"));
    let text = program.report(&[]);
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = format!("software prefetch can help where the address is known {ahead} accesses ahead");
    assert!(said.contains(&sentence), "{text}");
    // Where the last level holds the nodes, it is the one to be in time for.
    let report = program.run(&["report", "a trace", "-m", "sapphire-rapids", "--json"]);
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let findings = report["findings"].as_array().expect("findings");
    let gather = findings.iter().find(|finding| finding["function"] == "gather").expect("a finding");
    let distance = evidence(gather, "prefetch").expect("a distance");
    assert_eq!(distance["latency_cycles"], 125, "the latency of its L3: {distance}");
}

/// A copy of whole objects touches all of them: nothing is said of parts that are in use.
#[test]
fn objects_that_are_copied_whole_are_not_divided() {
    let whole = "for (long i = 0; i < CELLS; i++) sum += whole(i * 7919 % CELLS);";
    let findings = Reported::new(&MEMBERS.replace("WHOLE", whole)).findings();
    assert!(findings.iter().any(|finding| finding["function"] == "hot"));
    for finding in &findings {
        assert!(evidence(finding, "density").is_none() && finding["edit"].is_null(), "{finding}");
    }
}

/// Two loads that become one have no line, and are shown at that of their use, with a mark; what is loaded there itself has
/// none.
#[test]
fn a_line_that_is_not_its_own_is_marked() {
    let recorded = Recorded::new(
        r#"
#include <stdio.h>
#include <stdlib.h>
struct record { int size; char rest[124]; };
struct sorter { struct record *other, *list; };
struct value { int room; char rest[124]; };
enum { COUNT = 20000 };
static inline int size_of(const struct sorter *sorter) {
  int size;
  if (sorter->other)
    size = sorter->other->size;
  else
    size = sorter->list->size;
  return size;
}
__attribute__((noinline)) static long fits(const struct sorter *sorters, const struct value *values) {
  long sum = 0;
#pragma clang loop vectorize(disable)
  for (int i = 0; i < COUNT; i++) {
    int size = size_of(&sorters[i]);
    if (values[i].room < size)
      sum++;
  }
  return sum;
}
int main(void) {
  struct record *records = malloc(COUNT * sizeof *records);
  struct value *values = malloc(COUNT * sizeof *values);
  struct sorter *sorters = calloc(COUNT, sizeof *sorters);
  for (int i = 0; i < COUNT; i++) {
    struct record *one = &records[(i * 7919L) % COUNT];
    records[i].size = i;
    values[i].room = COUNT - i;
    *(i % 3 ? &sorters[i].other : &sorters[i].list) = one;
  }
  printf("%ld\n", fits(sorters, values));
}
"#,
        MACHINE,
    );
    let sites = recorded.run(&["dump", "--sites", "trace"]);
    let merged = |line: &&str| line.contains("\t~") && line.contains("\trecord\tsize\t");
    assert!(sites.lines().any(|line| merged(&line)), "the loads are still two: {sites}");
    let text = recorded.run(&["report", "trace", "-m", "./tiny.toml"]);
    let line = |data: &str| {
        text.lines().find(|line| line.contains(data) && line.contains(" fits ")).expect("a line")
    };
    assert!(line("record.size").contains(" ~program.c:21 "), "{text}");
    assert!(line("value.room").contains(" program.c:21 "), "{text}");
}
