//! `firsttouch maps`

use crate::arguments::Maps;
use crate::exit;
use crate::output::{print, print_json};
use crate::processes::of_each;
use crate::terminal::style;
use anyhow::Result;
use firsttouch_model::rows::{Id, Object, Profile};
use firsttouch_model::system::{MappedObject, ProcessMaps};
use firsttouch_pipeline::{AnalysedProfile, AnalysisRequest, running_process};
use firsttouch_report::{MapsJson, MapsText, maps_text};
use firsttouch_system::calls::pages::{explain_refusal, sample_nodes};
use firsttouch_system::process;
use std::collections::BTreeMap;
use std::io::stdout;
use std::path::Path;

/// The number of pages that are sampled in an object.
const PAGES: u64 = 2000;

pub fn run(arguments: &Maps) -> Result<u8> {
    let objects = arguments.profile.as_deref().map(NamedObjects::read).transpose()?;
    let processes = of_each(&arguments.process, |pid| {
        let mut maps = process::maps(Path::new("/"), pid)?;
        if let Some(objects) = &objects {
            objects.add_to(&mut maps);
        }
        Ok(maps)
    })?;
    if arguments.json {
        print_json(&MapsJson::new(&processes))?;
    } else {
        print(&maps_text(&processes, MapsText { all: arguments.all, style: style(&stdout()) }))?;
    }
    Ok(exit::DONE)
}

/// The names of a profile's objects.
struct NamedObjects {
    file: String,
    profile: Profile,
    /// Names from the analysis, by the object's id, and by the call stack that allocated it: the analysis merges objects of one stack into
    /// one.
    by_id: BTreeMap<Id, String>,
    by_site: BTreeMap<Id, String>,
}

impl NamedObjects {
    fn read(file: &Path) -> Result<Self> {
        let AnalysedProfile { profile, analysis, .. } = AnalysedProfile::open(file, &AnalysisRequest::default())?;
        let by_id: BTreeMap<Id, String> = analysis.objects.into_iter().map(|object| (object.id, object.name)).collect();
        let by_site = profile.objects.iter().filter_map(|object| Some((object.site?, by_id.get(&object.id)?.clone()))).collect();
        Ok(Self { file: file.display().to_string(), profile, by_id, by_site })
    }

    fn name(&self, object: &Object) -> String {
        let known = self.by_id.get(&object.id).or_else(|| self.by_site.get(&object.site?));
        known.or(object.name.as_ref()).cloned().unwrap_or_else(|| format!("{} object", object.kind.as_str()))
    }

    /// Adds the objects of this process that were alive when the profile ended.
    fn add_to(&self, maps: &mut ProcessMaps) {
        let process = match running_process(&self.profile, maps.pid) {
            Ok(process) => process,
            Err(why) => {
                maps.doubts.push(format!("{} {why}: no objects are named", self.file));
                return;
            }
        };
        let page_bytes = self.profile.machine.page_bytes;
        let mut refused = None;
        for object in self.profile.objects.iter().filter(|object| object.process == process.id && object.died_ns.is_none()) {
            let (pages_asked, pages_by_node) = match sample_nodes(maps.pid, object.address, object.bytes, page_bytes, PAGES) {
                Ok(sample) => sample,
                Err(error) => {
                    refused = Some(error);
                    (0, BTreeMap::new())
                }
            };
            maps.objects.push(MappedObject {
                id: object.id,
                name: self.name(object),
                address: object.address,
                bytes: object.bytes,
                pages_asked,
                pages_by_node,
            });
        }
        maps.objects.sort_by_key(|object| object.address);
        if let Some(error) = refused {
            maps.doubts.push(explain_refusal(&error));
        }
        maps.doubts
            .extend(maps.objects.is_empty().then(|| format!("{} has no objects of process {} that still live", self.file, maps.pid)));
    }
}
