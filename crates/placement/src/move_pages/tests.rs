//! Migration on a fake kernel.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use super::*;

const PAGE: u64 = 4096;

/// Nodes of pages by address; some pages refuse to move, some only once.
#[derive(Default)]
struct Fake {
    pages: BTreeMap<u64, u32>,
    refuse: BTreeMap<u64, i32>,
    busy_once: Vec<u64>,
    /// The process ends after this many calls.
    lives: Option<u32>,
    calls: u32,
}

impl Fake {
    fn with(pages: u64, node: impl Fn(u64) -> u32) -> Self {
        Self { pages: (0..pages).map(|page| (0x1000 + page * PAGE, node(page))).collect(), ..Self::default() }
    }

    fn alive(&mut self) -> io::Result<()> {
        self.calls += 1;
        if self.lives.is_some_and(|most| self.calls > most) { Err(io::Error::from_raw_os_error(libc::ESRCH)) } else { Ok(()) }
    }
}

impl Mover for Mutex<Fake> {
    fn nodes(&self, addresses: &[u64]) -> io::Result<Vec<i32>> {
        let mut fake = self.lock().unwrap();
        fake.alive()?;
        Ok(addresses.iter().map(|address| fake.pages.get(address).map_or(-libc::ENOENT, |node| *node as i32)).collect())
    }

    fn relocate(&self, addresses: &[u64], nodes: &[i32]) -> io::Result<Vec<i32>> {
        let mut fake = self.lock().unwrap();
        fake.alive()?;
        assert!(nodes.windows(2).all(|pair| pair[0] <= pair[1]), "pages of one target in a row");
        let one = |(address, node): (&u64, &i32)| {
            if let Some(errno) = fake.refuse.get(address) {
                return -errno;
            }
            if let Some(place) = fake.busy_once.iter().position(|busy| busy == address) {
                fake.busy_once.remove(place);
                return -libc::EBUSY;
            }
            fake.pages.insert(*address, *node as u32);
            *node
        };
        Ok(addresses.iter().zip(nodes).map(one).collect())
    }
}

/// Migrates on the fake kernel with one thread, so that the result is deterministic.
fn moved(fake: Fake, spans: &[Span]) -> (Migrated, Fake) {
    let fake = Mutex::new(fake);
    let done = migrate(&fake, 1, spans, &mut |_| ()).unwrap();
    (done, fake.into_inner().unwrap())
}

fn span(pages: u64, rule: Rule) -> Span {
    Span { start: 0x1000, end: 0x1000 + pages * PAGE, page_bytes: PAGE, grain_bytes: PAGE, present: None, rule }
}

/// Check that pages on other nodes move and the rest stays, chunk by chunk, with progress.
#[test]
fn pages_move_to_a_node() {
    let fake = Mutex::new(Fake::with(10_000, |page| u32::from(page % 4 == 0)));
    let mut looks = 0;
    let spans = [span(20_000, Rule::To(vec![1]))];
    let done = migrate(&fake, 1, &spans, &mut |_| looks += 1).unwrap();
    let fake = fake.into_inner().unwrap();
    assert!(fake.pages.values().all(|node| *node == 1) && looks == 1 + (20_001 - CHUNK).div_ceil(CHUNK));
    assert_eq!((done.moved, done.there, done.moved_bytes), (7500, 2500, 7500 * PAGE));
    assert_eq!((done.from, done.to), ([(0, 7500 * PAGE)].into(), [(1, 7500 * PAGE)].into()));
    assert!(done.failed.is_empty() && !done.ended);
}

/// Check that pages are distributed evenly over several nodes, and interleaved by address.
#[test]
fn pages_are_spread() {
    let count = |fake: &Fake, node: u32| fake.pages.values().filter(|on| **on == node).count();
    let (_, fake) = moved(Fake::with(900, |_| 3), &[span(900, Rule::To(vec![0, 2]))]);
    assert_eq!((count(&fake, 0), count(&fake, 2)), (450, 450));
    let (done, fake) = moved(Fake::with(900, |_| 0), &[span(900, Rule::Interleave(vec![0, 1, 2]))]);
    assert_eq!((done.moved, done.there), (600, 300));
    assert!(fake.pages.iter().all(|(address, node)| u64::from(*node) == address / PAGE % 3));
}

/// Check that pages which cannot move are counted by reason, and that busy pages are tried once more.
#[test]
fn what_cannot_move_is_counted() {
    let mut fake = Fake::with(100, |_| 0);
    fake.refuse = [(0x1000, libc::EACCES), (0x2000, libc::ENOMEM), (0x3000, libc::EBUSY), (0x4000, libc::ENOENT)].into();
    fake.busy_once = vec![0x5000, 0x6000];
    let (done, fake) = moved(fake, &[span(100, Rule::To(vec![1]))]);
    assert_eq!(done.failed, [(libc::EACCES, 1), (libc::ENOMEM, 1), (libc::EBUSY, 1)].into());
    assert_eq!((done.moved, fake.pages[&0x5000], fake.pages[&0x3000]), (96, 1, 0));
}

/// Check that a page that was busy as part of a huge page, and moved with it, counts as moved.
#[test]
fn parts_of_huge_pages_are_counted() {
    /// Pages 0 and 1 are one huge page: the second is busy while the first moves.
    struct Huge(Mutex<Fake>);
    impl Mover for Huge {
        fn nodes(&self, addresses: &[u64]) -> io::Result<Vec<i32>> {
            self.0.nodes(addresses)
        }
        fn relocate(&self, addresses: &[u64], nodes: &[i32]) -> io::Result<Vec<i32>> {
            let mut status = self.0.relocate(addresses, nodes)?;
            status[1] = -libc::EBUSY;
            Ok(status)
        }
    }
    let huge = Huge(Mutex::new(Fake::with(2, |_| 0)));
    let done = migrate(&huge, 1, &[span(2, Rule::To(vec![1]))], &mut |_| ()).unwrap();
    assert_eq!((done.moved, done.there, done.from), (2, 0, [(0, 2 * PAGE)].into()));
}

/// Check that the result of a process that ends is kept, that a refusal is an error, and that a sparse mapping is not searched to its
/// end.
#[test]
fn ends_and_refusals() {
    let dies = Fake { lives: Some(4), ..Fake::with(4 * CHUNK, |_| 0) };
    let (done, _) = moved(dies, &[span(4 * CHUNK, Rule::To(vec![1]))]);
    assert!(done.ended && done.moved == 2 * CHUNK - 1);

    struct Refuses;
    impl Mover for Refuses {
        fn nodes(&self, _: &[u64]) -> io::Result<Vec<i32>> {
            Err(io::Error::from_raw_os_error(libc::EPERM))
        }
        fn relocate(&self, _: &[u64], _: &[i32]) -> io::Result<Vec<i32>> {
            Ok(Vec::new())
        }
    }
    for threads in [1, 4] {
        let refused = migrate(&Refuses, threads, &[span(9 * CHUNK, Rule::To(vec![1]))], &mut |_| ());
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EPERM));
    }

    let huge = Span { present: Some(10), ..span(1 << 30, Rule::To(vec![1])) };
    let (done, fake) = moved(Fake::with(10, |_| 0), &[huge]);
    assert_eq!((done.moved, fake.calls), (10, 2));
}

/// Check that all addresses of a transparent huge page have one target.
#[test]
fn huge_pages_are_not_torn() {
    let huge = 512 * PAGE;
    for rule in [Rule::To(vec![1, 2]), Rule::Interleave(vec![1, 2])] {
        let (_, fake) = moved(Fake::with(2048, |_| 0), &[Span { grain_bytes: huge, ..span(2048, rule) }]);
        assert!(fake.pages.iter().all(|(address, node)| u64::from(*node) == 1 + address / huge % 2));
    }
}

/// Check that several threads move each page once and report all pages, and that small mappings share a call.
#[test]
fn several_threads_and_many_mappings() {
    let pages = 9 * CHUNK;
    let fake = Mutex::new(Fake { busy_once: vec![0x5000, 0x1000 + (pages - 2) * PAGE], ..Fake::with(pages, |page| (page % 2) as u32) });
    let mut last = Migrated::default();
    let done = migrate(&fake, 4, &[span(pages, Rule::To(vec![1]))], &mut |done| last = done.clone()).unwrap();
    assert!(fake.into_inner().unwrap().pages.values().all(|node| *node == 1));
    assert_eq!((done.moved, done.there, done.failed.len()), (pages / 2, pages / 2, 0));
    assert_eq!((done.from.clone(), last), ([(0, pages / 2 * PAGE)].into(), done));

    let spans: Vec<Span> =
        (0..1000).map(|at| Span { start: 0x1000 + at * PAGE, end: 0x1000 + (at + 1) * PAGE, ..span(1, Rule::To(vec![2, 3])) }).collect();
    let (done, fake) = moved(Fake::with(1000, |_| 0), &spans);
    assert_eq!((done.to, fake.calls), ([(2, 500 * PAGE), (3, 500 * PAGE)].into(), 2));
}
