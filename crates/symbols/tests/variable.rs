//! Source lines of typical programs, and absurd lines.

use firsttouch_symbols::{variable_at_allocation, variable_at_column, variable_near};

/// (line, call, number on the line, variable).
const LINES: &[(&str, &str, usize, Option<&str>)] = &[
    // C
    ("    double *A = malloc(n * sizeof *A);", "malloc", 0, Some("A")),
    ("double *A = (double *)malloc(n * sizeof(double));", "malloc", 0, Some("A")),
    ("A = (double*)calloc(n, sizeof(double));", "calloc", 0, Some("A")),
    ("A=malloc(n);", "malloc", 0, Some("A")),
    ("p->field = malloc(n);", "malloc", 0, Some("p->field")),
    ("grid.data = malloc(n);", "malloc", 0, Some("grid.data")),
    ("rows[i] = malloc(n);", "malloc", 0, Some("rows[i]")),
    ("for (int i = 0; i < n; i++) rows[i] = malloc(n);", "malloc", 0, Some("rows[i]")),
    ("g->rows[i + 1].v[0] = malloc(n);", "malloc", 0, Some("g->rows[i+1].v[0]")),
    ("*out = malloc(n);", "malloc", 0, Some("*out")),
    ("if (x) *out = malloc(n);", "malloc", 0, Some("*out")),
    ("(*out) = malloc(n);", "malloc", 0, Some("(*out)")),
    ("posix_memalign((void**)&A, 64, n);", "aligned", 0, Some("A")),
    ("if (posix_memalign((void **)&p->a, 4096, n) != 0) {", "aligned", 0, Some("p->a")),
    ("int rc = posix_memalign(&buf, 64, n);", "aligned", 0, Some("buf")),
    ("posix_memalign((void**)(&A), 64, n);", "aligned", 0, Some("A")),
    ("MPI_Alloc_mem(n * sizeof *a, MPI_INFO_NULL, &a);", "malloc", 0, Some("a")),
    ("MPI_Win_allocate_shared(n, 8, MPI_INFO_NULL, comm, &window, &win);", "mmap", 0, Some("window")),
    ("MPI_Win_allocate(n, 8, MPI_INFO_NULL, comm);", "mmap", 0, None),
    ("A = aligned_alloc(64, n);", "aligned", 0, Some("A")),
    ("A = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);", "mmap", 0, Some("A")),
    ("if ((A = malloc(n)) == NULL) return 1;", "malloc", 0, Some("A")),
    ("if (!(A = malloc(n))) return 1;", "malloc", 0, Some("A")),
    ("double *a = malloc(n), *b = malloc(m);", "malloc", 0, Some("a")),
    ("double *a = malloc(n), *b = malloc(m);", "malloc", 1, Some("b")),
    ("int i, *a = malloc(n);", "malloc", 0, Some("a")),
    ("a = malloc(n); b = calloc(n, 8);", "calloc", 0, Some("a")),
    ("a = malloc(n); b = malloc(n);", "malloc", 1, Some("b")),
    ("a = xmalloc(n);", "malloc", 0, Some("a")),
    ("a = my_array_alloc(n, 3);", "malloc", 0, Some("a")),
    ("tmp = realloc(buf, 2 * n);", "realloc", 0, Some("tmp")),
    ("struct grid g = { .data = malloc(n) };", "malloc", 0, Some("data")),
    ("a = cond ? malloc(n) : NULL;", "malloc", 0, Some("a")),
    ("return malloc(n);", "malloc", 0, None),
    ("free(malloc(n));", "malloc", 0, None),
    ("a = b == c ? malloc(n) : 0; /* x = 1 */", "malloc", 0, Some("a")),
    ("/* b = */ a = malloc(n); // c = malloc(n)", "malloc", 0, Some("a")),
    ("d[\"k;=\"] = malloc(n);", "malloc", 0, Some("d[\"k;=\"]")),
    ("case 1: a = malloc(n); break;", "malloc", 0, Some("a")),
    ("default: a = malloc(n); break;", "malloc", 0, Some("a")),
    ("{ a = malloc(n); }", "malloc", 0, Some("a")),
    ("double (*m)[n] = malloc(sizeof(double[n][n]));", "malloc", 0, Some("m")),
    // C++
    ("std::vector<double> a(n), b(n);", "malloc", 0, Some("a")),
    ("std::vector<double> a(n), b(n);", "malloc", 1, Some("b")),
    ("std::vector<double> a, b(n);", "malloc", 0, Some("b")),
    ("std::vector<double> a(n, 0.0);", "malloc", 0, Some("a")),
    ("const std::vector<std::vector<double>> a(n, std::vector<double>(m));", "malloc", 0, Some("a")),
    ("std::vector<double> a{1.0, 2.0};", "malloc", 0, Some("a")),
    ("std::vector<double> a = make(n);", "malloc", 0, Some("a")),
    ("{ std::vector<double> a(n); use(a); }", "malloc", 0, Some("a")),
    ("Eigen::MatrixXd A(n, n);", "malloc", 0, Some("A")),
    ("a.resize(n);", "malloc", 0, Some("a")),
    ("this->grid->a.resize(n);", "malloc", 0, Some("grid->a")),
    ("rows[i].reserve(n); cols.reserve(m);", "malloc", 1, Some("cols")),
    ("auto a = std::make_unique<double[]>(n);", "malloc", 0, Some("a")),
    ("double* a = new double[n];", "malloc", 0, Some("a")),
    ("double *a = new (std::nothrow) double[n];", "malloc", 0, Some("a")),
    ("std::unique_ptr<double[]> a(new double[n]);", "malloc", 0, Some("a")),
    ("std::unique_ptr<double[]> a{new double[n]};", "malloc", 0, Some("a")),
    ("p.reset(new double[n]);", "malloc", 0, Some("p")),
    ("Grid::Grid(int n) : data_(n) {}", "malloc", 0, Some("data_")),
    ("Grid(int n) : n_(n), data_(n), more_{n} {}", "malloc", 2, Some("more_")),
    (": data_(n),", "malloc", 0, Some("data_")),
    ("Grid(int n) : data_(new double[n]) {}", "malloc", 0, Some("data_")),
    ("Grid(int n) : a_((double*)malloc(n)), b_((double*)malloc(n)) {}", "malloc", 1, Some("b_")),
    ("auto [a, b] = std::pair(make(n), make(m));", "malloc", 1, Some("b")),
    ("a = b;", "malloc", 0, Some("a")),
    ("double* a = alloc.allocate(n);", "malloc", 0, Some("a")),
    ("return std::vector<double>(n);", "malloc", 0, None),
    // Fortran
    ("  allocate(a(n), b(n,m))", "malloc", 0, Some("a")),
    ("  allocate(a(n), b(n,m))", "malloc", 1, Some("b")),
    ("  ALLOCATE ( A(N), STAT=IERR )", "malloc", 0, Some("A")),
    ("allocate(x%field(n))", "malloc", 0, Some("x%field")),
    ("allocate(rows(i)%v(0:n+1, 2))", "malloc", 0, Some("rows(i)%v")),
    ("allocate(real(8) :: a(n))", "malloc", 0, Some("a")),
    ("allocate(a, source=b)", "malloc", 0, Some("a")),
    ("allocate(a(n, n)); allocate(b(n, n)); allocate(w(n))", "malloc", 1, Some("b")),
    ("allocate(a(n, n)); allocate(b(n, n)); allocate(w(n))", "malloc", 2, Some("w")),
    ("allocate(a(n)) ! then allocate(b(n))", "malloc", 1, Some("a")),
    ("if (.not. allocated(a)) allocate(a(n)) ! b(n)", "malloc", 0, Some("a")),
    ("allocate(a(n), &", "malloc", 0, Some("a")),
    ("a = b + c", "malloc", 0, Some("a")),
    ("deallocate(a)", "malloc", 0, None),
    // Rust
    ("let mut a = vec![0.0; n];", "calloc", 0, Some("a")),
    ("let a: Vec<f64> = Vec::with_capacity(n);", "malloc", 0, Some("a")),
    ("let a = Vec::<f64>::with_capacity(n);", "malloc", 0, Some("a")),
    ("let (a, b) = (vec![0.0; n], vec![0.0; m]);", "calloc", 1, Some("b")),
    ("self.data = vec![0.0; n];", "calloc", 0, Some("self.data")),
    ("Grid { data: vec![0.0; n], n }", "calloc", 0, Some("data")),
    ("    data: vec![0.0; n],", "calloc", 0, Some("data")),
    ("let a: Vec<f64> = (0..n).map(|i| i as f64).collect();", "malloc", 0, Some("a")),
    ("static mut A: Vec<f64> = make();", "malloc", 0, Some("A")),
    ("Some(n) => vec![0.0; n],", "calloc", 0, None),
    // Python
    ("a = np.zeros(n)", "calloc", 0, Some("a")),
    ("self.grid = np.empty((n, m), dtype='f8')", "malloc", 0, Some("self.grid")),
    ("a, b = np.zeros(n), np.ones(n)", "malloc", 1, Some("b")),
    ("a, b = make(n)", "malloc", 1, Some("b")),
    ("a: np.ndarray = np.zeros(n)", "calloc", 0, Some("a")),
    ("a = np.zeros(n) # b = np.ones(n)", "calloc", 0, Some("a")),
    ("rows[i] = np.zeros(n // 2)", "calloc", 0, Some("rows[i]")),
    ("    return np.zeros(n)", "calloc", 0, None),
    // Names that are keywords elsewhere, pointers to rows, macros.
    ("double *in = malloc(n * sizeof *in);", "malloc", 0, Some("in")),
    ("from = malloc(n);", "malloc", 0, Some("from")),
    ("std::vector<double> in(n);", "malloc", 0, Some("in")),
    ("double (*C)[N] = calloc(N, sizeof *C);", "calloc", 0, Some("C")),
    ("(*C)[i] = malloc(n);", "malloc", 0, Some("(*C)[i]")),
    ("float(*cyc)[COLS] = malloc(rows * sizeof *cyc);", "malloc", 0, Some("cyc")),
    ("    float (*cyc) [COLS] = malloc(rows * sizeof *cyc);", "malloc", 0, Some("cyc")),
    ("double (*restrict a)[N] = malloc(n);", "malloc", 0, Some("a")),
    ("const double (* const a)[N][M] = (double (*)[N][M])malloc(n);", "malloc", 0, Some("a")),
    ("struct cell (*grid)[N] = malloc(n);", "malloc", 0, Some("grid")),
    ("struct cell(*grid)[N] = malloc(n);", "malloc", 0, Some("grid")),
    ("std::array<float, 4>(*a)[N] = new std::array<float, 4>[n][N];", "malloc", 0, Some("a")),
    ("int (*f[2])[M] = {malloc(n), malloc(n)};", "malloc", 0, Some("f")),
    ("double *a[2] = {malloc(n), malloc(n)};", "malloc", 1, Some("a")),
    ("double *restrict p = malloc(n);", "malloc", 0, Some("p")),
    ("T *restrict p = aligned_alloc(64, n), *restrict q = aligned_alloc(64, n);", "aligned", 1, Some("q")),
    ("auto p = std::make_unique<double[]>(n);", "malloc", 0, Some("p")),
    ("std::vector<double> v(n);", "std::vector", 0, Some("v")),
    ("cyc = (float(*)[COLS])malloc(n);", "malloc", 0, Some("cyc")),
    ("else a[2] = malloc(n);", "malloc", 0, Some("a[2]")),
    ("else (*C)[i] = malloc(n);", "malloc", 0, Some("(*C)[i]")),
    ("if (x) a[i] = malloc(n);", "malloc", 0, Some("a[i]")),
    ("p->f[2] = malloc(n);", "malloc", 0, Some("p->f[2]")),
    ("ALLOC(self, n);", "malloc", 0, Some("self")),
    ("ALLOC(n + 1);", "malloc", 0, None),
    ("alloc_all(a, n);", "malloc", 0, None),
    // Compilers turn malloc and memset into calloc: the index on the line decides.
    ("double *a = malloc(n * 8), *b = malloc(n * 8), *c = malloc(n * 8);", "calloc", 2, Some("c")),
    ("double *a = malloc(n * 8), *b = malloc(n * 8), *c = malloc(n * 8);", "malloc", 1, Some("b")),
    ("a = malloc(n); b = calloc(n, 8);", "calloc", 1, Some("b")),
    ("a = calloc(n, 8); b = malloc(n);", "malloc", 0, Some("b")),
    ("allocate(field(8000000), w(8000000))", "calloc", 1, Some("w")),
    // Functions of the program, on the lines that call them.
    ("double *a = make_grid(n), *b = make_grid(n);", "make_grid", 1, Some("b")),
    ("float *mask = (float *)xmalloc(n * sizeof(float));", "xmalloc", 0, Some("mask")),
    ("run(make_grid(n));", "make_grid", 0, None),
    // Containers beside calls of allocators: the call tells which of them made the memory.
    ("explicit F(size_t n_) : rho(n_, 1.0), flux(std::make_unique<double[]>(n_)), n(n_) {}", "std::vector", 0, Some("rho")),
    ("explicit F(size_t n_) : rho(n_, 1.0), flux(std::make_unique<double[]>(n_)), n(n_) {}", "malloc", 0, Some("flux")),
    ("F(long n) : rho(n, 1.0), e(n, 2.0) {}", "std::vector", 1, Some("e")),
    ("std::vector<double> a(n); auto b = std::make_unique<double[]>(n);", "std::vector", 0, Some("a")),
    ("std::vector<double> a(n); auto b = std::make_unique<double[]>(n);", "malloc", 0, Some("b")),
    ("a.resize(n); b = new double[n];", "std::vector", 0, Some("a")),
    ("auto a = new std::vector<double>(n);", "std::vector", 0, Some("a")),
    ("use(std::make_unique<double[]>(n));", "std::vector", 0, None),
    // Absurd lines.
    ("", "malloc", 0, None),
    ("=", "malloc", 0, None),
    ("malloc", "malloc", 0, None),
    ("malloc(", "malloc", 0, None),
    ("= malloc(n)", "malloc", 0, None),
    (")))] = malloc(((", "malloc", 0, None),
    ("a = malloc(", "malloc", 0, Some("a")),
    ("a(((([[[{{{<<<", "malloc", 0, None),
    ("\"unterminated = malloc(n)", "malloc", 0, None),
    ("allocate(", "malloc", 0, None),
    ("allocate)", "malloc", 0, None),
    ("posix_memalign(", "aligned", 0, None),
    ("posix_memalign((((&))))", "aligned", 0, None),
    ("новый = malloc(n);", "malloc", 0, Some("новый")),
    ("数组[ï] = calloc(n, 8); // 😀", "calloc", 0, Some("数组[ï]")),
    ("*=&->.::%;:{}[]()<>=!'\"\\#/", "malloc", 0, None),
    ("a = malloc(n);", "malloc", usize::MAX, Some("a")),
    ("a = malloc(n); b = malloc(n);", "malloc", usize::MAX, None),
    ("a = malloc(n);", "", 0, Some("a")),
];

#[test]
fn variables_of_allocations() {
    let mut wrong = Vec::new();
    for (line, call, nth, expected) in LINES {
        let found = variable_at_allocation(line, call, *nth);
        if found.as_deref() != *expected {
            wrong.push(format!("{line}  [{call} {nth}]: found {found:?}, expected {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}\n{} wrong", wrong.join("\n"), wrong.len());
}

/// Check the variable of an allocation by its column, as GCC and Clang give it: a caret below the line.
#[test]
fn variables_at_columns() {
    for (line, call, carets, expected) in [
        ("double *A = malloc(8 * n), *x = malloc(m);", "malloc", "            ^", Some("A")),
        ("double *A = malloc(8 * n), *x = malloc(m);", "malloc", "                                ^", Some("x")),
        ("double *p = new double[n], *q = new double[m];", "malloc", "                       ^", Some("p")),
        ("double *p = new double[n], *q = new double[m];", "malloc", "            ^", Some("p")),
        ("double *p = new double[n], *q = new double[m];", "malloc", "                                ^", Some("q")),
        ("std::vector<double> a(n, 1.0), b(n), c(9);", "std::vector", "                            ^", Some("a")),
        ("std::vector<double> a(n, 1.0), b(n), c(9);", "std::vector", "                    ^", Some("a")),
        ("std::vector<double> a(n, 1.0), b(n), c(9);", "std::vector", "                               ^", Some("b")),
        ("std::vector<double> a(n, 1.0), b(n), c(9);", "std::vector", "                                        ^", Some("c")),
        ("/* \u{e4}\u{e4} */ x = malloc(n); y = malloc(m);", "malloc", "                   ^", Some("x")),
        ("allocate(a(n), b(m))", "malloc", "               ^", None),
        ("x = malloc(n);", "malloc", "^", None),
        ("", "malloc", "^", None),
    ] {
        let column = u32::try_from(carets.len()).unwrap();
        assert_eq!(variable_at_column(line, call, column).as_deref(), expected, "{line}\n{carets}");
    }
    assert_eq!(variable_at_column("x = malloc(n);", "malloc", u32::MAX).as_deref(), Some("x"));
    assert_eq!(variable_at_column("x = malloc(n);", "malloc", 0), None);
}

#[test]
fn statements_over_several_lines() {
    let source: Vec<&str> = "int x;
double *A =
    (double *)malloc(n *
                     sizeof(double));
foo();
std::vector<double>
    b(n);
Grid::Grid(int n)
    : first_(n),
      second_(n)
{
}
allocate(c(n), &
         d(n))
let e: Vec<f64> = (0..n)
    .map(f)
    .collect();
self.f = np.concatenate([
    x,
    np.zeros(n)])
posix_memalign(
    (void **)&g,
    64, n);
bar();
malloc(n);
"
    .lines()
    .collect();
    for (marker, expected) in [
        ("(double *)malloc", Some("A")),
        ("sizeof(double));", Some("A")),
        ("    b(n);", Some("b")),
        ("first_", Some("first_")),
        ("second_", Some("second_")),
        ("allocate(c(n)", Some("c")),
        ("d(n))", Some("c")),
        (".collect", Some("e")),
        ("np.zeros(n)])", Some("self.f")),
        ("(void **)&g", Some("g")),
        ("bar();", None),
        ("malloc(n);", None),
    ] {
        let index = source.iter().position(|line| line.contains(marker)).unwrap();
        let found = variable_near(&source, index, "malloc", 0);
        assert_eq!(found.as_deref(), expected, "{marker}");
    }
    assert_eq!(variable_near(&source, usize::MAX, "malloc", 0), None);
    assert_eq!(variable_near(&[], 0, "malloc", 0), None);
}

/// Check that all allocations of a continued statement have their own names, whichever of its lines they are said to be on.
#[test]
fn continued_allocate_statements() {
    let source: Vec<&str> = "x = 1
if (.not. allocated(a)) allocate(a(n), & ! the first
    ! a comment
    b(n), &

    & c(n), stat=ierr)
allocate(d(n))
      allocate(e(n),
     &         f(n))
i = a &
    + b"
    .lines()
    .collect();
    for (line, names) in
        [(0, vec!["x"]), (1, vec!["a", "b", "c"]), (5, vec!["a", "b", "c"]), (6, vec!["d"]), (8, vec!["e", "f"]), (9, vec!["i"])]
    {
        let found: Vec<String> = (0..names.len()).filter_map(|nth| variable_near(&source, line, "malloc", nth)).collect();
        assert_eq!(found, names, "line {line}");
    }
    assert_eq!(variable_near(&source, 5, "malloc", 3), None);
}

#[test]
fn long_and_random_lines_do_no_harm() {
    let long = format!("a = malloc(n{});", ", n".repeat(1_000_000));
    assert_eq!(variable_at_allocation(&long, "malloc", 0).as_deref(), Some("a"));
    for piece in ["(", "[", "<", "a<", "a(", "=", "malloc(", "allocate(", "a.", "*", "new ", ")", "]", "a,", "::", "'", "vec!["] {
        let _ = variable_at_allocation(&piece.repeat(100_000), "malloc", 0);
    }
    let pieces = [
        "a",
        "=",
        "==",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "<",
        ">",
        ",",
        ";",
        ":",
        "::",
        ".",
        "->",
        "%",
        "*",
        "&",
        " ",
        "malloc(",
        "new ",
        "allocate(",
        "posix_memalign(",
        "let ",
        "auto ",
        "vec![",
        "np.zeros(",
        "\"",
        "'",
        "//",
        "/*",
        "#",
        "\\",
        "é",
        "💥",
        "std::vector<",
        ".resize(",
        "0",
    ];
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    for _ in 0..50_000 {
        let line: String = (0..random(30)).map(|_| pieces[random(pieces.len())]).collect();
        let number = random(3);
        let _ = variable_at_allocation(&line, "malloc", number);
        let _ = variable_near(&[&line, &line, &line], 1, "calloc", number);
        let _ = variable_at_column(&line, "malloc", u32::try_from(number).unwrap_or(u32::MAX));
    }
}
