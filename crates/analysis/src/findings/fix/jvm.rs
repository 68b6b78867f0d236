//! Fixes for memory that a Java virtual machine allocates (libjvm.so). Its user can change the Java program and the JVM's options, not the JVM.
//!
//! What UseNUMA does for the Parallel and G1 collectors: https://openjdk.org/jeps/345. Not measured.

use super::at;
use crate::findings::{Case, Context};
use firsttouch_model::finding::FindingKind;
use firsttouch_model::rows::Frame;

/// The option is among the words of the program's command.
const NUMA: &str = "-XX:+UseNUMA";
const OPTIONS: &str = "-XX:+UseNUMA (Parallel GC, and G1 since JDK 14) gives each thread's new objects memory on the node where it runs. \
                       -XX:+AlwaysPreTouch makes the JVM touch the whole heap at its start: that saves page faults later, but by itself does not \
                       bring memory to its users. To spread the heap over the nodes instead: numactl --interleave=all java ...";

/// Memory of the JVM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    /// The heap, or what it keeps beside it.
    Heap,
    /// What the program allocates off the heap (`ByteBuffer.allocateDirect`, `Unsafe`).
    Direct,
}

/// `None` for memory that no JVM allocated, and where the usual fix is true of a JVM too.
pub(super) fn jvm(context: &Context<'_>, kind: FindingKind, case: &Case<'_>) -> Option<String> {
    let memory = memory(context.places.frames(case.object.site))?;
    let used = at(case.view.used_at.first());
    let is_first_touch = matches!(
        kind,
        FindingKind::SerialFirstTouch
            | FindingKind::MismatchedPartition
            | FindingKind::IoFirstTouch
            | FindingKind::RecycledMemory
            | FindingKind::NoStablePartition
            | FindingKind::SharedRead
            | FindingKind::HugePageSharing
    );
    let has_numa = context.profile.meta.command.iter().any(|word| word == NUMA);
    is_first_touch.then(|| words(memory, &used, has_numa))
}

fn words(memory: Memory, used: &str, has_numa: bool) -> String {
    match memory {
        Memory::Heap if has_numa => format!(
            "this is memory of the JVM, as its heap is. {NUMA} is on already: it gives new objects memory on the node of the thread that allocates them, and \
             places no array by the threads that use its parts, nor what the collector moves. Let each thread allocate the objects and the parts of \
             arrays that it uses{used}, instead of one thread for all; or spread the heap over the nodes: numactl --interleave=all java ..., without {NUMA}"
        ),
        Memory::Heap => format!(
            "this is memory of the JVM, as its heap is: start java with -XX:+UseNUMA, and let each thread allocate the objects and the parts of \
             arrays that it uses{used}, instead of one thread for all. {OPTIONS}"
        ),
        Memory::Direct => format!(
            "this is memory off the Java heap (ByteBuffer.allocateDirect, Unsafe), which -XX:+UseNUMA does not place: let each thread allocate and \
             fill a buffer for the part that it uses{used}; or spread it over the nodes: numactl --interleave=all java ..."
        ),
    }
}

/// A native library that Java code calls allocates its own memory: the JVM's code is further out then.
fn memory(frames: &[Frame]) -> Option<Memory> {
    let is_jvm = |frame: &Frame| frame.module.as_deref().is_some_and(|module| module.ends_with("/libjvm.so"));
    frames.first().filter(|frame| is_jvm(frame))?;
    let is_direct = |frame: &Frame| frame.function.as_deref().is_some_and(|name| name.contains("Unsafe_"));
    Some(if frames.iter().any(is_direct) { Memory::Direct } else { Memory::Heap })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame((function, module): (&str, &str)) -> Frame {
        Frame { function: Some(function.to_owned()), module: Some(module.to_owned()), ..Frame::default() }
    }

    /// Check that the heap and direct buffers get different fixes, and that memory of a native library which Java calls gets none of Java.
    #[test]
    fn memory_of_the_jvm() {
        const JVM: &str = "/usr/lib/jvm/java-17/lib/server/libjvm.so";
        let of = |calls: &[(&str, &str)]| memory(&calls.iter().copied().map(frame).collect::<Vec<_>>());
        // Recorded on OpenJDK 17.
        let heap = [("os::pd_commit_memory_or_exit", JVM), ("G1CollectedHeap::initialize", JVM), ("JavaMain", "/opt/libjli.so")];
        assert_eq!(of(&heap), Some(Memory::Heap));
        assert_eq!(of(&[("os::malloc", JVM), ("Unsafe_AllocateMemory0", JVM)]), Some(Memory::Direct));
        assert_eq!(of(&[("blas_alloc", "/opt/libblas.so"), ("JavaCalls::call_helper", JVM)]), None);
        assert_eq!(of(&[("main", "/opt/mylibjvm.so")]), None);
        assert_eq!(of(&[]), None);
    }

    /// Check that a user of Java reads the JVM's options, and nothing of the functions of the JVM.
    #[test]
    fn words_of_java() {
        let heap = words(Memory::Heap, "", false);
        assert!(["-XX:+UseNUMA", "G1 since JDK 14", "-XX:+AlwaysPreTouch"].iter().all(|option| heap.contains(option)), "{heap}");
        assert!(!heap.contains("os::") && !heap.contains("thread function"), "{heap}");
        assert!(words(Memory::Direct, "", false).contains("does not place"));
        let again = words(Memory::Heap, "", true);
        assert!(again.contains("is on already") && !again.contains("start java with"), "{again}");
    }
}
