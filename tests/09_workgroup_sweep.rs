//! 09: every size gives the CPU's result, none is past a limit, a made-up curve gets the verdict that it
//! deserves, and what is kept is used only where it holds.
//!
//! Not proven: that a verdict on your adapter is the right one, or that a size which won is fast; that a
//! driver keeps its word up to the limits which it states.

use std::path::{Path, PathBuf};

#[path = "../examples/09_workgroup_sweep.rs"]
mod example;
mod process;

use example::{
    BLUR, KERNELS, SCALE, Shape, Verdict, candidates, compile, contest, cpu, idle, keep, key,
    middle, recall, sealed, subgroups, sweep, sweep_agree, sweep_groups, sweeper, swept, verdict,
};
use wgpu::Limits;

// Named here, so that the compiler finds a use for all of the example.
const _: fn() = example::main;

const EXAMPLE: process::Example = process::Example {
    name: "09_workgroup_sweep",
    quick: &["1000"],
    outside: &[],
    too_large: &["2^32"],
    ids: |printed| {
        let spared = printed.contains("no sweep");
        if spared { &["09.1"] } else { &["09.1", "09.2", "09.3"] }
    },
};

fn cells(n: usize) -> Vec<u32> {
    (0..n as u32).map(|i| i.wrapping_mul(2654435761)).collect()
}

/// The definition of correct, on a grid small enough to be looked at: 5 is left out of the square.
#[test]
fn the_cpu_scales_and_adds_up_neighbours() {
    let data = [1, 2, 3, 4, 10, 20, 30, 40, 100, u32::MAX];
    assert_eq!(cpu(SCALE, &data, 1), 6);
    assert_eq!(cpu(SCALE, &data, 9), u32::MAX - 2, "it wraps");
    // 1 2 3, 4 10 20, 30 40 100.
    let sums: Vec<u32> = (0..9).map(|i| cpu(BLUR, &data, i)).collect();
    assert_eq!(sums, [17, 40, 35, 87, 210, 175, 84, 204, 170]);
}

/// None, few, squares and not, and around the sizes of workgroups and their squares.
const EDGES: [usize; 24] = [
    0, 1, 2, 3, 4, 5, 8, 9, 31, 33, 255, 256, 257, 1023, 1025, 3969, 4095, 4096, 4097, 16385,
    65025, 65536, 66050, 70000,
];

/// Around one workgroup of every size, around a side of it, and where `scale` needs a second row.
#[test]
fn every_candidate_gives_the_cpus_result_at_every_edge() {
    let _turn = process::turn();
    let gpu = sweeper().unwrap();
    let (lanes, limits) = (gpu.adapter.get_info().subgroup_max_size, gpu.device.limits());
    for n in EDGES {
        let numbers = cells(n);
        let data = swept(&gpu, &numbers).unwrap();
        for kernel in [SCALE, BLUR] {
            let mut shapes = candidates(kernel, lanes, &limits);
            shapes.extend([[48, 1], [1, 1], [7, 1]].iter().filter(|_| kernel == SCALE));
            shapes.extend([[8, 8], [7, 3], [1, 1]].iter().filter(|_| kernel == BLUR));
            for shape in shapes {
                let candidate = compile(&gpu, kernel, shape, n as u64);
                let agreed = sweep_agree(&gpu, &data, &candidate, u64::MAX);
                assert!(agreed.is_ok(), "{}, {shape:?}, n = {n}: {agreed:?}", KERNELS[kernel]);
            }
        }
    }
    let n = 65535 * 4 + 1;
    let numbers = cells(n);
    let data = swept(&gpu, &numbers).unwrap();
    for width in [1, 3, 4] {
        let candidate = compile(&gpu, SCALE, [width, 1], n as u64);
        assert!(sweep_groups(SCALE, [width, 1], n as u64)[1] > 1, "two rows or more");
        sweep_agree(&gpu, &data, &candidate, u64::MAX).unwrap();
    }
}

/// A check that finds nothing when there is something would let any size win.
#[test]
fn a_wrong_result_is_found() {
    let _turn = process::turn();
    let gpu = sweeper().unwrap();
    let numbers = cells(100 * 100);
    let data = swept(&gpu, &numbers).unwrap();
    // A kernel that believes the grid to be another.
    let wrong = compile(&gpu, BLUR, [16, 16], 99 * 99);
    let error = sweep_agree(&gpu, &data, &wrong, u64::MAX).unwrap_err().to_string();
    assert!(error.contains("16×16: element ") && error.contains("not the CPU's"), "{error}");
}

/// What wgpu does say of an override's value. Of one that is past a limit it says nothing: 06 shows it.
#[test]
fn a_size_of_0_is_an_error_of_the_pipeline() {
    let _turn = process::turn();
    let gpu = sweeper().unwrap();
    let scope = gpu.device.push_error_scope(wgpu::ErrorFilter::Validation);
    compile(&gpu, SCALE, [0, 1], 9);
    let error = pollster::block_on(scope.pop()).expect("no workgroup is empty").to_string();
    assert!(error.contains("workgroup_size override isn't strictly positive"), "{error}");
}

fn limits(most: u32, x: u32, y: u32) -> Limits {
    Limits {
        max_compute_invocations_per_workgroup: most,
        max_compute_workgroup_size_x: x,
        max_compute_workgroup_size_y: y,
        ..Limits::downlevel_defaults()
    }
}

#[test]
fn candidates_are_whole_subgroups_within_the_limits() {
    let widths = |lanes, limits| {
        let shapes = candidates(SCALE, lanes, &limits);
        shapes.into_iter().map(|[width, rows]| width * rows).collect::<Vec<_>>()
    };
    assert_eq!(widths(32, limits(1024, 1024, 1024)), [32, 64, 128, 256, 512, 1024]);
    assert_eq!(widths(32, limits(1024, 256, 1024)), [32, 64, 128, 256]);
    assert_eq!(widths(64, limits(256, 1024, 1024)), [64, 128, 256]);
    assert_eq!(widths(8, limits(96, 1024, 1024)), [8, 16, 32, 64]);
    assert_eq!(widths(4, limits(256, 256, 256)), [4, 8, 16, 32, 64, 128, 256]);
    assert!(widths(128, limits(64, 64, 64)).is_empty());
    let (most, narrow, low) = (limits(1024, 1024, 64), limits(1024, 128, 256), limits(128, 64, 64));
    assert_eq!(candidates(BLUR, 32, &most)[0], [256, 1]);
    assert_eq!(candidates(BLUR, 32, &most).last(), Some(&[4, 64]));
    assert_eq!(candidates(BLUR, 32, &narrow)[0], [128, 2]);
    assert!(candidates(BLUR, 32, &low).is_empty());
}

/// On this adapter too: wgpu would not say so.
#[test]
fn no_candidate_is_past_a_limit_of_this_device() {
    let _turn = process::turn();
    let gpu = sweeper().unwrap();
    let (lanes, limits) = (gpu.adapter.get_info().subgroup_max_size, gpu.device.limits());
    for kernel in [SCALE, BLUR] {
        let shapes = candidates(kernel, lanes, &limits);
        assert!(shapes.len() > 1, "nothing to choose from: {shapes:?}");
        for [columns, rows] in shapes {
            assert!(columns * rows <= limits.max_compute_invocations_per_workgroup);
            assert!(columns <= limits.max_compute_workgroup_size_x);
            assert!(rows <= limits.max_compute_workgroup_size_y);
            assert!((columns * rows).is_multiple_of(lanes), "{columns}×{rows}");
        }
    }
}

#[test]
fn idle_lanes_are_those_without_an_element() {
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a}, not {b}");
    close(idle(SCALE, [64, 1], 640, 32), 0.0);
    // 48 lanes take two subgroups of 32: of 64, 16 have nothing to do.
    close(idle(SCALE, [48, 1], 480, 32), 0.25);
    close(idle(SCALE, [48, 1], 480, 8), 0.0);
    close(idle(SCALE, [256, 1], 1, 32), 255.0 / 256.0);
    close(idle(BLUR, [16, 16], 17 * 17, 32), 1.0 - 289.0 / 1024.0);
    close(idle(SCALE, [64, 1], 0, 32), 0.0);
}

/// Points with the median, and a share of it to either side.
fn curve(points: &[(f64, f64)]) -> Vec<[f64; 3]> {
    points.iter().map(|&(us, share)| [us * (1.0 - share), us, us * (1.0 + share)]).collect()
}

#[test]
fn made_up_curves_get_their_verdicts() {
    for (what, medians, off, wanted, alike) in [
        ("a plateau", &[200.0, 110.0, 100.0, 101.0, 102.0][..], 0.01, Verdict::Plateau, 2..5),
        ("a plateau at the start", &[100.0, 103.0, 130.0, 190.0], 0.01, Verdict::Plateau, 0..2),
        ("a plateau in the middle", &[150.0, 100.0, 104.0, 150.0], 0.01, Verdict::Plateau, 1..3),
        ("a peak", &[150.0, 120.0, 100.0, 115.0, 140.0], 0.01, Verdict::Peak, 2..3),
        ("a slope", &[150.0, 130.0, 115.0, 100.0], 0.01, Verdict::Peak, 3..4),
        ("flat", &[103.0, 101.0, 100.0, 102.0, 104.9], 0.01, Verdict::Flat, 0..5),
        ("flat to the bit", &[7.0, 7.0, 7.0], 0.0, Verdict::Flat, 0..3),
        ("one size", &[100.0], 0.01, Verdict::Flat, 0..1),
        ("noise", &[130.0, 110.0, 100.0, 125.0], 0.4, Verdict::Noise, 0..4),
        ("two tops", &[100.0, 140.0, 101.0, 150.0], 0.01, Verdict::Scattered, 0..1),
        ("a top beside a plateau", &[101.0, 140.0, 100.0, 102.0], 0.01, Verdict::Plateau, 2..4),
        ("two tops in noise", &[100.0, 140.0, 101.0, 150.0], 0.3, Verdict::Noise, 0..1),
        // Noise hides the small differences, and not the large one.
        ("a plateau in noise", &[300.0, 110.0, 100.0, 125.0], 0.3, Verdict::Plateau, 1..4),
    ] {
        let points: Vec<(f64, f64)> = medians.iter().map(|&us| (us, off)).collect();
        assert_eq!(verdict(&curve(&points)), (wanted, alike), "{what}");
    }
}

/// Only how sure the best is decides who is as good: one that is not sure of itself gains nothing.
#[test]
fn a_size_with_wild_runs_is_not_as_good_as_the_best() {
    let points = [(100.0, 0.01), (150.0, 0.6), (200.0, 0.01)];
    assert_eq!(verdict(&curve(&points)), (Verdict::Peak, 0..1));
}

#[test]
fn the_middle_is_the_median_between_two_ranks() {
    let runs: Vec<f64> = (0..60).map(f64::from).collect();
    assert_eq!(middle(&runs), [22.0, 30.0, 38.0]);
    assert_eq!(middle(&runs[..15]), [3.0, 7.0, 11.0]);
    assert_eq!(middle(&runs[..5]), [0.0, 2.0, 4.0]);
    assert_eq!(middle(&runs[..1]), [0.0, 0.0, 0.0]);
}

/// What the least of the runs would name: one lucky run among slow ones.
#[test]
fn one_lucky_run_moves_the_least_and_not_the_median() {
    let steady: Vec<f64> = (0..15).map(|i| 100.0 + f64::from(i) / 10.0).collect();
    let mut lucky: Vec<f64> = steady.iter().map(|us| us * 1.3).collect();
    lucky[0] = 80.0;
    assert!(lucky[0] < steady[0], "by the least, the slower one wins");
    assert!(middle(&lucky)[1] > 1.2 * middle(&steady)[1], "by the median, it does not");
}

/// Fewer rounds than these would hang a verdict on nothing; and every candidate has as many.
#[test]
fn a_sweep_measures_every_candidate() {
    let _turn = process::turn();
    let gpu = sweeper().unwrap();
    let numbers = cells(1000);
    let data = swept(&gpu, &numbers).unwrap();
    let shapes = [[64, 1], [32, 1], [256, 1]];
    let all = sweep(&gpu, &data, SCALE, &shapes).unwrap();
    assert_eq!(all.iter().map(|candidate| candidate.shape).collect::<Vec<_>>(), shapes);
    for candidate in &all {
        assert!((5..=60).contains(&candidate.runs.len()), "{} runs", candidate.runs.len());
        assert_eq!(candidate.runs.len(), all[0].runs.len());
        assert!(candidate.runs.iter().all(|&us| us.is_finite() && us > 0.0));
        assert!(candidate.runs.is_sorted() && candidate.cold > 0.0);
    }
}

/// A file of its own for each test, gone afterwards.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        let name = format!("09_workgroup_sweep_{name}_{}.kept", std::process::id());
        let path = std::env::temp_dir().join(name);
        _ = std::fs::remove_file(&path);
        File(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
    }
}

const KEPT: [(Shape, f64); 2] = [([64, 1], 123.5), ([32, 8], 456.75)];

fn allowed() -> [Vec<Shape>; 2] {
    [SCALE, BLUR].map(|kernel| candidates(kernel, 32, &limits(1024, 1024, 1024)))
}

fn info() -> wgpu::AdapterInfo {
    let mut info = wgpu::AdapterInfo::new(wgpu::DeviceType::DiscreteGpu, wgpu::Backend::Vulkan);
    info.name = "a card".into();
    info.driver = "a driver".into();
    info.driver_info = "1.2.3".into();
    info
}

#[test]
fn what_was_kept_comes_back_and_only_for_its_key() {
    let file = File::new("key");
    let ours = key(&info(), 1000);
    assert_eq!(recall(&file.0, &ours, &allowed()), Err("nothing so far".into()));
    keep(&file.0, &ours, KEPT).unwrap();
    assert_eq!(recall(&file.0, &ours, &allowed()), Ok(KEPT));
    let text = std::fs::read_to_string(&file.0).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    let mut others = [info(), info(), info(), info()];
    others[0].name = "another card".into();
    others[1].driver = "another driver".into();
    others[2].driver_info = "1.2.4".into();
    others[3].backend = wgpu::Backend::Dx12;
    let others = others.iter().map(|info| key(info, 1000));
    for other in others.chain([key(&info(), 100), key(&info(), 10000)]) {
        let why = recall(&file.0, &other, &allowed()).unwrap_err();
        assert_eq!(why, "no line for this key; ignored: 1 with another, 0 damaged", "{other}");
    }
}

/// The shader is in the key by a fingerprint of its text, so that any edit makes another key.
#[test]
fn the_shader_is_in_the_key() {
    let key = key(&info(), 1000);
    let fields: Vec<&str> = key.split('\t').collect();
    assert_eq!(fields[..3], ["a card", "a driver 1.2.3", "vulkan"]);
    let text = include_bytes!("../shaders/09_workgroup_sweep.wgsl");
    let mut hash = 0xcbf29ce484222325u64;
    for &byte in text {
        hash = (hash ^ u64::from(byte)).wrapping_mul(1099511628211);
    }
    assert_eq!(fields[3..], [format!("{hash:016x}"), "1000".into(), String::new()]);
}

#[test]
fn names_with_tabs_and_line_ends_stay_in_one_field() {
    let mut odd = info();
    odd.name = "a\tcard\nof\r\ntwo lines".into();
    let file = File::new("odd");
    keep(&file.0, &key(&odd, 1), KEPT).unwrap();
    assert_eq!(recall(&file.0, &key(&odd, 1), &allowed()), Ok(KEPT));
    assert_eq!(std::fs::read_to_string(&file.0).unwrap().lines().count(), 1);
}

#[test]
fn a_new_winner_takes_the_place_of_the_old_one_and_leaves_others_alone() {
    let file = File::new("replace");
    let [a, b] = [key(&info(), 1), key(&info(), 10)];
    let newer = [([128, 1], 100.0), ([64, 4], 400.0)];
    keep(&file.0, &a, KEPT).unwrap();
    keep(&file.0, &b, KEPT).unwrap();
    keep(&file.0, &a, newer).unwrap();
    assert_eq!(recall(&file.0, &a, &allowed()), Ok(newer));
    assert_eq!(recall(&file.0, &b, &allowed()), Ok(KEPT));
    assert_eq!(std::fs::read_to_string(&file.0).unwrap().lines().count(), 2);
}

/// Cut off, changed, run together, or nothing of ours at all: never trusted, and gone with the next.
#[test]
fn a_damaged_line_is_ignored_with_a_word() {
    let file = File::new("damage");
    let ours = key(&info(), 1000);
    keep(&file.0, &ours, KEPT).unwrap();
    let line = std::fs::read(&file.0).unwrap();
    let text = String::from_utf8(line.clone()).unwrap();
    let mut damaged: Vec<Vec<u8>> = (1..line.len() - 1).map(|end| line[..end].to_vec()).collect();
    for place in 0..line.len() - 1 {
        let mut other = line.clone();
        other[place] ^= 1;
        damaged.push(other);
    }
    let changed = [("64x1", "128x1"), ("64x1", "64x"), ("123.5", "1.5"), ("\t", " "), ("32x8", "")];
    damaged.extend(changed.map(|(from, to)| text.replacen(from, to, 1).into_bytes()));
    damaged.extend([b"\n".to_vec(), b"64\n".to_vec(), (0..=255).collect(), vec![0; 1000]]);
    for bytes in damaged {
        std::fs::write(&file.0, &bytes).unwrap();
        let told = recall(&file.0, &ours, &allowed());
        let shown = String::from_utf8_lossy(&bytes);
        let why = told.expect_err(&format!("{shown:?} was trusted"));
        assert!(why.starts_with("no line for this key; ignored: 0 with another, "), "{why}");
        assert!(!why.ends_with(" 0 damaged"), "{why} of {shown:?}");
    }
    keep(&file.0, &ours, KEPT).unwrap();
    assert_eq!(std::fs::read(&file.0).unwrap(), line, "the damaged lines are gone");
    // A line is none the worse for what stands around it, nor for the line ends of Windows.
    std::fs::write(&file.0, [b"\xff\xfe damage\r\n", line.trim_ascii_end(), b"\r\n"].concat())
        .unwrap();
    assert_eq!(recall(&file.0, &ours, &allowed()), Ok(KEPT));
}

/// Metal tells 4 to 64, and Vulkan 4 to 128 where it cannot ask: the doubling begins at the least.
#[test]
fn a_range_of_subgroups_leaves_out_no_size() {
    for (least, most, wanted) in [(4, 64, [4, 64]), (32, 32, [32, 32]), (0, 0, [4, 4])] {
        let told =
            wgpu::AdapterInfo { subgroup_min_size: least, subgroup_max_size: most, ..info() };
        assert_eq!(subgroups(&told), wanted);
    }
}

/// A whole line, with a right seal, that asks for what this device does not have.
#[test]
fn a_size_that_is_no_candidate_is_not_trusted() {
    let file = File::new("wide");
    let ours = key(&info(), 1000);
    for winners in [
        "2048x1 1.0\t32x8 1.0",
        "48x1 1.0\t32x8 1.0",
        "0x1 1.0\t32x8 1.0",
        "64x2 1.0\t32x8 1.0",
        "64x1 1.0\t32x32 1.0",
        "4294967360x1 1.0\t32x8 1.0",
        "-64x1 1.0\t32x8 1.0",
        "64x1 NaN\t32x8 1.0",
        "64x1 -1.0\t32x8 1.0",
        "64x1 inf\t32x8 1.0",
        "64x1 1.0",
        "64x1\t32x8",
        "",
    ] {
        std::fs::write(&file.0, sealed(&format!("{ours}{winners}"))).unwrap();
        let why = recall(&file.0, &ours, &allowed()).expect_err(winners);
        assert_eq!(
            why, "a line with a size that is no candidate here, and is ignored",
            "{winners}"
        );
    }
}

#[test]
fn a_file_that_cannot_be_read_or_written_is_a_word_and_no_panic() {
    let ours = key(&info(), 1000);
    let folder = std::env::temp_dir();
    let why = recall(&folder, &ours, &allowed()).unwrap_err();
    assert!(why.contains("cannot be read"), "{why}");
    assert!(keep(&folder, &ours, KEPT).is_err());
    // What is too long to be ours is not cut down to what was read of it.
    let long = File::new("long");
    std::fs::write(&long.0, "x\n".repeat(1 << 20)).unwrap();
    let why = recall(&long.0, &ours, &allowed()).unwrap_err();
    assert!(why.ends_with("is longer than 1 MiB; delete it"), "{why}");
    assert!(keep(&long.0, &ours, KEPT).is_err());
    assert_eq!(std::fs::metadata(&long.0).unwrap().len(), 2 << 20);
    assert!(keep(Path::new("no such folder/x.kept"), &ours, KEPT).is_err());
    assert_eq!(recall(Path::new(""), &ours, &allowed()), Err("nothing so far".into()));
}

/// A line that this test keeps where the example looks: the next run takes it and says so.
#[test]
fn a_run_takes_what_was_kept_and_no_other_line() {
    let _turn = process::turn();
    let path = std::env::current_exe().unwrap();
    let target = path.parent().and_then(Path::parent).unwrap();
    let path = target.join("examples").join("09_workgroup_sweep.kept");
    let (gpu, n) = (sweeper().unwrap(), 1009);
    let info = gpu.adapter.get_info();
    let before = std::fs::read(&path).ok();
    let kept = [SCALE, BLUR].map(|kernel| {
        let shapes = candidates(kernel, info.subgroup_max_size, &gpu.device.limits());
        (shapes[1], 123.456)
    });
    drop(gpu);
    keep(&path, &key(&info, n), kept).unwrap();
    let spared = process::run(&["1009"]);
    let another = process::run(&["1010"]);
    let text = std::fs::read_to_string(&path).unwrap();
    let damaged: String = text.replace("\t1009\t", "\t1008\t");
    std::fs::write(&path, damaged).unwrap();
    let ignored = process::run(&["1009"]);
    match before {
        Some(before) => std::fs::write(&path, before).unwrap(),
        None => std::fs::remove_file(&path).unwrap(),
    }
    assert!(spared.stdout.contains("no sweep"), "{spared:?}");
    assert!(spared.stdout.contains("|   123.5 |"), "{spared:?}");
    let [[width, _], [columns, rows]] = kept.map(|(shape, _)| shape);
    assert!(spared.stdout.contains(&format!("| scale  | {width:>5} |")), "{spared:?}");
    assert!(spared.stdout.contains(&format!("{columns}×{rows} |")), "{spared:?}");
    the_sentences_are_the_tables(&another.stdout, info.subgroup_max_size.max(4) / 2 * 3);
    for (swept, word) in [(another, "with another"), (ignored, "1 damaged")] {
        assert!(swept.code == Some(0) && swept.stdout.contains("| scale |"), "{swept:?}");
        assert!(swept.stdout.contains("no line for this key") && swept.stdout.contains(word));
    }
}

/// Of `scale`: no sentence names the size outside the contest, the best has the least median of the
/// others, and the ratio in the notes is the slowest's of them to it, as far as they are printed.
#[track_caller]
fn the_sentences_are_the_tables(printed: &str, outside: u32) {
    let (_, scale) = printed.split_once("| scale |").expect("a table");
    let (scale, _) = scale.split_once("| blur ").expect("another table");
    let row = |row: &str| -> Option<(u32, f64)> {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        Some((cells.get(1)?.parse().ok()?, cells.get(6)?.parse().ok()?))
    };
    let all: Vec<(u32, f64)> = scale.lines().filter_map(row).collect();
    let medians = all.iter().filter(|(size, _)| *size != outside).map(|&(_, median)| median);
    let (least, most) = (medians.clone().fold(f64::MAX, f64::min), medians.fold(0.0, f64::max));
    let sentences = scale.lines().filter(|line| !line.starts_with('|'));
    let names = sentences.flat_map(|line| line.split([' ', ',', ':', ';']));
    assert!(!names.into_iter().any(|name| name == outside.to_string()), "{outside} in {printed}");
    let after = |words: &str| -> f64 {
        let (_, rest) = printed.split_once(words).expect(words);
        rest.split([' ', ';', '×']).next().and_then(|word| word.parse().ok()).expect("a number")
    };
    let best = after("The median chooses ");
    assert_eq!(after("09.1 measured "), best, "{printed}");
    assert!(all.contains(&(best as u32, least)), "{best} is not the best in {printed}");
    let off = (after("09.2 measured ") - most / least).abs();
    let lost = most / least * (0.05 / least + 0.05 / most);
    assert!(off <= 0.0051 + lost, "the slowest is {} to the best in {printed}", most / least);
}

/// However it does: 48 lanes of subgroups of 32 are there to be looked at.
#[test]
fn the_size_outside_is_not_in_the_contest() {
    let _turn = process::turn();
    let gpu = sweeper().unwrap();
    for times in [[100.0, 1.0, 50.0, 80.0], [100.0, 900.0, 50.0, 80.0], [51.0, 50.0, 50.0, 51.0]] {
        let all: Vec<_> = [32, 48, 64, 128]
            .into_iter()
            .zip(times)
            .map(|(width, us)| {
                let mut candidate = compile(&gpu, SCALE, [width, 1], 1000);
                candidate.runs = vec![us; 5];
                candidate
            })
            .collect();
        let (inside, curve) = contest(&all, [48, 1]);
        let shapes: Vec<Shape> = inside.iter().map(|candidate| candidate.shape).collect();
        assert_eq!(shapes, [[32, 1], [64, 1], [128, 1]]);
        assert_eq!(curve, [times[0], times[2], times[3]].map(|us| [us; 3]));
    }
}
