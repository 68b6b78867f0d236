//! The help on the keys.

/// Keys and what they do.
pub const KEYS: &[(&str, &str)] = &[
    ("arrows, PgUp, PgDn, Home, End", "move the selection"),
    ("Tab, Shift-Tab", "next, previous view"),
    ("Enter", "look closely at a process; Esc goes back"),
    ("/ or F3; n", "search; next match"),
    ("\\ or F4", "show only rows with a text; Esc shows all again"),
    ("< > or F6; I", "sort by another column; turn the order"),
    ("P, M, R", "sort by CPU, memory, remote share"),
    ("1, 2, 3; w", "window of 1, 10, 60 s; next window"),
    ("+ -", "longer, shorter delay"),
    ("p or space", "pause; of a record: play"),
    ("Left, Right or [ ]", "of a record: one step back, forward"),
    ("q or F10", "leave"),
    ("Ctrl-C", "leave, and interrupt the program that top started"),
];

/// What the figures mean.
pub const WORDS: &[&str] = &[
    "REMOTE  share of the accesses to memory of another node [95 % interval];",
    "        dim: uncertain or old; -: not known, the line below the table says why",
    "NODES   resident memory by node     n  samples behind the remote share",
    "CPU%    100 is one CPU, over the window     MOVES  to another CPU, so far",
];
