//! Words of a page that are the same for every trace: the meanings of terms, and of views.

use super::Fact;

/// Explanations of terms, which stand where the terms do.
pub(super) fn terms() -> Vec<Fact> {
    let terms = [
        (
            "wait",
            "modelled cycles for which the program does nothing but wait for data. A model of the processor's core finds \
             them from what each access missed; it ranks, and is no measurement",
        ),
        (
            "miss",
            "an access whose cache line a level did not hold, so that the next level was asked: the nearest cache first, \
             memory last",
        ),
        (
            "false sharing",
            "a thread lost a cache line because another one wrote bytes of it that the first does not use: apart, both \
             would keep their lines",
        ),
        (
            "true sharing",
            "a thread needs bytes that another one wrote: the line has to come, wherever they lie",
        ),
        (
            "handed over",
            "lines that came once: from a thread that has ended, or that made the one which uses them. Nothing is to be \
             done about them",
        ),
        ("wait instructions", "executing instructions while nothing is waited for"),
        ("wait latency", "the line was far, and nothing before the access let it begin earlier"),
        ("wait chain", "the loads that the address or the stored value is made of were not done"),
        ("wait window", "the core's window was full of instructions that waited"),
        ("wait buffers", "all fill buffers, or ports of the second level, were taken"),
        ("wait bandwidth", "the line was on its way, fetched ahead, or waited for those before it"),
        ("wait walk", "the page was not translated"),
        ("wait forwarding", "a store in flight had the bytes, or some of them"),
        ("wait stores", "the store buffer was full"),
        ("wait order", "an atomic update or a fence"),
        ("wait branch", "a branch was foretold wrongly, and waited for a load"),
    ];
    terms.map(fact).into()
}

/// Sentences on each view, and others beside the numbers.
pub(super) fn views() -> Vec<Fact> {
    let views = [
        ("complete", "All that the program's own code did was recorded, as far as is known."),
        (
            "model",
            "Misses are counted exactly, on simulated caches with the sizes of the machine. Cycles come from a model, which \
             ranks what waits; memlode validate compares it with samples of the native program.",
        ),
        (
            "filter",
            "Show one thread, object, type or member, what missed a level, or a part of the run: all stretches have as \
             many accesses. Filters go from view to view, and stand in the address.",
        ),
        (
            "causes",
            "Why accesses miss a level: shown are those that miss it for this cause, as memlode sim counts them over the \
             whole run. Of a thread, line and object, every stretch, and what misses the levels behind, has the same part \
             of them. Lines that another thread took are not among them: the view Threads has those.",
        ),
        ("no_causes", "Causes of misses can be chosen in a page for which they were simulated:"),
        ("unfiltered", "This view is of the whole run: filters change nothing here."),
        (
            "filtered",
            "What passes the filters, by the costs of the whole run: an access costs what those of its thread, line and \
             object cost in the mean, by the level that served it.",
        ),
        (
            "calls",
            "Functions by what they and all that they call cost; a box is as wide as its part. Choose a box to see it \
             alone. The cycles of a line are divided among the paths to it by latencies of their misses; with filters, each \
             path to a line keeps the part of it that passes.",
        ),
        (
            "phases",
            "Parts of the run in which most of the waiting is for the same data. A phase can be shown alone in other views, \
             and all but the first, which is often the start-up.",
        ),
        ("no_calls", "No call path has any of these."),
        (
            "ranges",
            "Which bytes of the object are accessed, and when: from left to right its bytes, from top to bottom the run. \
             Blocks of one allocation are drawn as one.",
        ),
        (
            "ranges_by_thread",
            "The bytes that each thread accesses: all, and, dark, the middle nine tenths of its accesses. Parts that \
             overlap are shared.",
        ),
        (
            "structures",
            "Types that the program uses, to scale: those that are waited for most come first. Members that are waited for \
             together belong in the same cache line; holes and cold members fill lines that nobody needs.",
        ),
        (
            "together",
            "A line that a cache holds is used well if what is used while it is there lies in it. Black is used with the \
             member in half of these residencies or more, grey is not.",
        ),
        (
            "marks",
            "Hot and cold members, and what edits of the layout buy, are in a page for which edits were tried:",
        ),
        (
            "source",
            "Functions by modelled cycles of their lines: instructions and waiting. The margin is coloured by the cycles of \
             each line; lines without a number made no access that was recorded.",
        ),
        (
            "objects",
            "Objects that belong together: those of one allocating call and its callers, global variables, and variables of \
             the stack.",
        ),
        (
            "memory",
            "Bytes that the program had asked for and not freed, at the end of each stretch of the run, by allocation; \
             the line above is the most within the stretch. What allocators add is not in it.",
        ),
        ("threads", "Threads of the program, and cache lines that they take from each other."),
        (
            "unshared",
            "What threads take from each other is not known here: it is found for whole traces in which each thread's \
             creation was recorded.",
        ),
        (
            "false_sharing",
            "Other bytes of the line were written: variables of different threads lie too close.",
        ),
        ("true_sharing", "Bytes that another thread wrote are needed: fewer threads, or less to share."),
        (
            "locks",
            "Locks that several threads take often. What they cost depends on who gets them when: as it was recorded, and if \
             threads took turns.",
        ),
        ("handed_over", "Lines that came once. Nothing is to be done about them."),
        (
            "time",
            "How the run goes, from its first recorded access to its last, in intervals of as many accesses each. Waiting is \
             the sum of all latencies here, as if no misses overlapped: an upper bound.",
        ),
        (
            "traffic",
            "Lines that memory gives to the caches, and written lines that it gets back, in bytes. What a prefetcher of the \
             machine fetches in vain comes besides.",
        ),
        (
            "traffic_time",
            "A mark stands where memory would be busy for the whole of an interval of which it is busy for half, by the \
             clock of the recorded run, which is slower than the program alone.",
        ),
        ("working_set", "Bytes that are touched in each interval: whole cache lines, and whole pages."),
        (
            "locality",
            "How often data are used again before a cache of a size forgets them, and how accesses walk. Of the whole run.",
        ),
        (
            "strides",
            "The usual step from one access of a line to its next. What walks with a constant step is fetched ahead; what \
             chases pointers waits for each load.",
        ),
        (
            "reuse",
            "The median distance is the number of bytes touched between two uses of the same data: a smaller cache misses.",
        ),
        (
            "waits",
            "Modelled time of the run by what it waits for: a bar is as long as its cycles, and grey is executing. Of the \
             whole run.",
        ),
        ("measured", "The times of this machine's caches were measured on it."),
        (
            "assumed",
            "The times of this machine's caches are assumed: memlode machine calibrate measures them.",
        ),
        (
            "compare",
            "Two traces side by side: what is new, gone, better, worse, or within what placement alone changes. Of whole \
             runs.",
        ),
        ("missing", "This page was made without it. To fill it:"),
    ];
    views.map(fact).into()
}

fn fact((heading, text): (&'static str, &str)) -> Fact {
    Fact { heading, text: text.to_string() }
}
