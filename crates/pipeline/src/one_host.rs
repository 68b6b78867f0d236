//! The traffic of one host of a job: predictions and plans are for one machine, and the host whose ranks have most remote traffic ends last.

use firsttouch_analysis::Analysis;
use firsttouch_analysis::job::HostView;
use firsttouch_model::traffic::{ObjectTraffic, Traffic, TrafficSample, Worker};

/// The index of the host with the largest remote fraction, and its traffic with its own numbers of nodes and workers; `None` for a job on one
/// host.
pub fn slowest(analysis: &Analysis) -> Option<(usize, Traffic)> {
    let all = analysis.hosts.iter().map(|host| of_host(&analysis.traffic, host)).enumerate();
    let all = all.filter(|_| analysis.hosts.len() > 1);
    all.max_by(|(_, a), (_, b)| remote_fraction(a).total_cmp(&remote_fraction(b)))
}

fn of_host(traffic: &Traffic, host: &HostView) -> Traffic {
    let own = |node: u32| node.checked_sub(host.first_node).filter(|node| (*node as usize) < host.nodes);
    let kept: Vec<(usize, u32)> =
        traffic.workers.iter().enumerate().filter_map(|(index, worker)| Some((index, own(worker.node)?))).collect();
    let number = |worker: usize| kept.binary_search_by_key(&worker, |(index, _)| *index).ok();
    let numbers = |workers: &[usize]| workers.iter().filter_map(|worker| number(*worker)).collect::<Vec<usize>>();
    let sample = |sample: &TrafficSample| {
        let bytes: Vec<(usize, f64)> = sample.bytes.iter().filter_map(|(worker, bytes)| Some((number(*worker)?, *bytes))).collect();
        let home = own(sample.home).filter(|_| !bytes.is_empty())?;
        Some(TrafficSample { home, bytes, owner: sample.owner.and_then(number), ..sample.clone() })
    };
    let object = |object: &ObjectTraffic| {
        let samples: Vec<TrafficSample> = object.samples.iter().filter_map(sample).collect();
        let mut own = ObjectTraffic { even: numbers(&object.even), samples, ..object.clone() };
        if let Some(parts) = &mut own.parts {
            let workers = numbers(&parts.workers);
            if workers.len() == parts.workers.len() {
                parts.workers = workers;
            } else {
                own.parts = None;
            }
        }
        (!own.samples.is_empty()).then_some(own)
    };
    Traffic {
        workers: kept.iter().map(|(index, node)| Worker { node: *node, ..traffic.workers[*index].clone() }).collect(),
        objects: traffic.objects.iter().filter_map(object).collect(),
        unknown: traffic.unknown,
        computing: traffic.computing,
        guessed: traffic.guessed,
    }
}

fn remote_fraction(traffic: &Traffic) -> f64 {
    let (mut remote, mut all) = (0.0, 0.0);
    for sample in traffic.objects.iter().flat_map(|object| &object.samples) {
        for (worker, bytes) in &sample.bytes {
            all += bytes;
            remote += if traffic.workers[*worker].node == sample.home { 0.0 } else { *bytes };
        }
    }
    if all > 0.0 { remote / all } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::traffic::{Division, Work};

    /// Check that the traffic of each host has its own nodes and workers, and that the host with most remote traffic is found.
    #[test]
    fn hosts_have_their_own_traffic() {
        let worker = |node: u32| Worker { node, ..Worker::default() };
        let sample = |home: u32, worker: usize| TrafficSample {
            position: 0.5,
            round: 0,
            home,
            owner: Some(worker),
            serial: false,
            bytes: vec![(worker, 8.0)],
        };
        let object = |id: i64, samples: Vec<TrafficSample>, workers: Vec<usize>| ObjectTraffic {
            id,
            name: "a".to_owned(),
            bytes: 64,
            division: Division::Owned,
            work: Work::AsSeen,
            has_fine_parts: false,
            even: workers.clone(),
            rows: 1,
            members: Vec::new(),
            parts: Some(firsttouch_model::traffic::Parts { period_bytes: None, ends: vec![0.5, 1.0], workers }),
            samples,
        };
        let traffic = Traffic {
            workers: vec![worker(0), worker(1), worker(2), worker(3)],
            objects: vec![object(1, vec![sample(0, 0), sample(1, 1)], vec![0, 1]), object(2, vec![sample(2, 2), sample(2, 3)], vec![2, 3])],
            unknown: 0.0,
            computing: None,
            guessed: 0.0,
        };
        let host = |name: &str, first_node: u32| HostView { name: name.to_owned(), first_node, nodes: 2 };
        let (a, b) = (of_host(&traffic, &host("a", 0)), of_host(&traffic, &host("b", 2)));
        assert_eq!((remote_fraction(&a), remote_fraction(&b)), (0.0, 0.5));
        assert_eq!(b.workers.iter().map(|worker| worker.node).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(b.objects.len(), 1);
        let own = &b.objects[0];
        assert_eq!((own.id, &own.even, own.parts.as_ref().map(|parts| parts.workers.clone())), (2, &vec![0, 1], Some(vec![0, 1])));
        assert_eq!(own.samples.iter().map(|sample| (sample.home, sample.bytes[0].0)).collect::<Vec<_>>(), [(0, 0), (0, 1)]);
    }
}
