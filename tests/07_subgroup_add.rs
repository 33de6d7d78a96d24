//! 07: with subgroups or with the tree, n elements come to the CPU's sum, at whatever subgroup size
//! this adapter has; without the feature, the tree is what is left.
//!
//! Not proven: other sizes than this adapter's, or that every kernel runs at the size that `census`
//! found; nor that the lanes of a subgroup lie side by side elsewhere.

use std::io::Write;
use std::sync::LazyLock;

mod data;
#[path = "../examples/07_subgroup_add.rs"]
mod example;
mod process;

use data::{SIZES, signed, whole};
use example::{
    CENSUS, Gpu, KERNELS, OPTIONAL, RANK, Resident, STANDARD, bound, groups, setup, sum, upload,
    words,
};
use wgpu::Features;

// Named here, so that the compiler finds a use for all of the example.
const _: fn() = example::main;

const EXAMPLE: process::Example = process::Example {
    name: "07_subgroup_add",
    quick: &["1000"],
    outside: &[],
    too_large: &["2^32"],
    ids: |printed| {
        let none = printed.contains("07.2 measured none   07.3 measured none");
        assert_eq!(none, printed.contains("needs subgroups"), "{printed}");
        &["07.1", "07.2", "07.3"]
    },
};

/// Of `KERNELS`: those that sum with the tree, and those that do with subgroups.
const TREES: [usize; 2] = [1, 2];
const SUBGROUPS: [usize; 2] = [3, 4];

/// Of `KERNELS`, those that sum, and that this adapter can run.
static SUMS: LazyLock<Vec<usize>> = LazyLock::new(|| {
    if setup(OPTIONAL).unwrap().kernels.len() > CENSUS {
        return [TREES, SUBGROUPS].concat();
    }
    // Not `eprintln!`, which a test keeps to itself until it has failed.
    _ = writeln!(std::io::stderr(), "07: no subgroups here, and what needs them is skipped");
    TREES.to_vec()
});

/// What `RANK` or `CENSUS` leaves in these many words; nothing where there are no subgroups.
fn left(gpu: &Gpu, kernel: usize, resident: &Resident, count: usize) -> Vec<u32> {
    if gpu.kernels.len() <= kernel {
        return Vec::new();
    }
    sum(gpu, kernel, resident).unwrap();
    words(&gpu.device, &gpu.queue, &gpu.errors, &resident.partials, count as u64).unwrap()
}

#[test]
fn whole_numbers_add_up_exactly_at_every_edge() {
    let _turn = process::turn();
    let gpu = setup(OPTIONAL).unwrap();
    for n in SIZES {
        let resident = upload(&gpu, &whole(n)).unwrap();
        let exact: usize = (0..n).map(|i| 1 + i % 17).sum();
        for &kernel in SUMS.iter() {
            let (sum, _) = sum(&gpu, kernel, &resident).unwrap();
            assert_eq!(sum, exact as f32, "{:?}, n = {n}", KERNELS[kernel]);
        }
    }
}

#[test]
fn no_elements_add_up_to_0() {
    let _turn = process::turn();
    let gpu = setup(OPTIONAL).unwrap();
    let resident = upload(&gpu, &[]).unwrap();
    for &kernel in SUMS.iter() {
        assert_eq!(sum(&gpu, kernel, &resident).unwrap().0, 0.0, "{:?}", KERNELS[kernel]);
    }
}

/// One element that is not 0, in every place of a workgroup: no lane's share is lost on the way.
#[test]
fn every_lane_counts() {
    let _turn = process::turn();
    let gpu = setup(OPTIONAL).unwrap();
    for lane in 0..256 {
        let mut data = vec![0.0; 1024];
        data[lane] = 1.0;
        let resident = upload(&gpu, &data).unwrap();
        for &kernel in SUMS.iter() {
            let (sum, _) = sum(&gpu, kernel, &resident).unwrap();
            assert_eq!(sum, 1.0, "{:?}, lane {lane}", KERNELS[kernel]);
        }
    }
}

/// Up to 2112 workgroups, one has a round of 4096 elements to itself; past that it takes two.
#[test]
fn many_takes_all_of_the_data_when_there_are_no_more_groups() {
    let _turn = process::turn();
    let gpu = setup(OPTIONAL).unwrap();
    for n in [2112 * 4096 - 1, 2112 * 4096 + 4_000_003] {
        let resident = upload(&gpu, &vec![1.0; n]).unwrap();
        for &kernel in SUMS.iter().filter(|&&kernel| KERNELS[kernel].0 == "many") {
            let (sum, _) = sum(&gpu, kernel, &resident).unwrap();
            assert_eq!(sum, n as f32, "{:?}, n = {n}", KERNELS[kernel]);
        }
    }
}

/// The bound is the example's: 2^-24 of the absolute values for each addition in the longest chain.
#[test]
fn both_signs_add_up_within_the_bound() {
    let _turn = process::turn();
    let gpu = setup(OPTIONAL).unwrap();
    for n in [3, 1000, 65537, 262147] {
        let data = signed(n);
        let resident = upload(&gpu, &data).unwrap();
        let exact: f64 = data.iter().map(|&x| f64::from(x)).sum();
        let absolute: f64 = data.iter().map(|x| f64::from(x.abs())).sum();
        for &kernel in SUMS.iter() {
            let (sum, _) = sum(&gpu, kernel, &resident).unwrap();
            let (off, bound) = ((f64::from(sum) - exact).abs(), bound(kernel, n as u64, absolute));
            let kernel = KERNELS[kernel];
            assert!(
                off <= bound,
                "{kernel:?}, n = {n}: off by {off}, and rounding explains {bound}"
            );
        }
    }
}

/// What the shader takes for granted: `lane / 4` is another for each subgroup, and the lanes that are
/// at their own place are the first subgroup.
#[test]
fn lanes_lie_side_by_side_in_subgroups_of_4_or_more() {
    let _turn = process::turn();
    let gpu = setup(OPTIONAL).unwrap();
    let seen = left(&gpu, CENSUS, &upload(&gpu, &[]).unwrap(), 4 * 256);
    for (lane, seen) in (0..).zip(seen.chunks(4)) {
        let &[told, place, counted, first] = seen else { unreachable!("chunks of four") };
        assert_eq!(lane, first + place, "lane {lane} of {seen:?}");
        assert!(place < counted && counted >= 4 && first % 4 == 0, "lane {lane} of {seen:?}");
        assert!(told >= counted, "fewer lanes than are there: lane {lane} of {seen:?}");
    }
}

#[test]
fn the_scan_gives_the_ranks_that_the_cpu_counts() {
    let _turn = process::turn();
    let gpu = setup(OPTIONAL).unwrap();
    for n in [1, 3, 31, 255, 256, 257, 1000, 65537] {
        let (data, mut above) = (signed(n), 0);
        let ranks = left(&gpu, RANK, &upload(&gpu, &data).unwrap(), n);
        for (i, rank) in ranks.into_iter().enumerate() {
            above *= u32::from(i % 256 > 0);
            assert_eq!(rank, above, "element {i} of {n}");
            above += u32::from(data[i] > 0.5);
        }
    }
}

/// A reader's adapter may lack them, and this one is asked for none.
#[test]
fn without_subgroups_the_tree_is_left_and_an_error_for_the_rest() {
    let _turn = process::turn();
    let gpu = setup(OPTIONAL - Features::SUBGROUP).unwrap();
    let resident = upload(&gpu, &whole(65537)).unwrap();
    let exact: usize = (0..65537).map(|i| 1 + i % 17).sum();
    for kernel in TREES {
        assert_eq!(sum(&gpu, kernel, &resident).unwrap().0, exact as f32, "{:?}", KERNELS[kernel]);
    }
    for kernel in [SUBGROUPS[0], SUBGROUPS[1], RANK, CENSUS] {
        let error = sum(&gpu, kernel, &resident).expect_err("no subgroups").to_string();
        assert!(error.contains("no subgroups"), "{error}");
    }
}

/// And with no optional feature at all, a time is the wall's.
#[test]
fn every_time_is_one() {
    let _turn = process::turn();
    for optional in [OPTIONAL, Features::empty()] {
        let gpu = setup(optional).unwrap();
        let resident = upload(&gpu, &whole(4097)).unwrap();
        for (kernel, about) in KERNELS.iter().enumerate().take(gpu.kernels.len()) {
            let (_, micros) = sum(&gpu, kernel, &resident).unwrap();
            assert!(micros.is_finite() && micros > 0.0, "{about:?} took {micros} µs");
        }
    }
}

/// The line that the standard demands. When naga takes it, the example can have it in the shader.
#[test]
fn naga_rejects_the_standards_line_and_only_that() {
    let error = wgpu::naga::front::wgsl::parse_str(STANDARD).expect_err("naga takes it now");
    assert_eq!(error.message(), "the `subgroups` enable-extension is not yet supported");
    let (line, shader) = STANDARD.split_once('\n').expect("a line in front");
    assert_eq!(line, "enable subgroups;");
    assert!(wgpu::naga::front::wgsl::parse_str(shader).is_ok(), "the rest of it");
}

#[test]
fn the_groups_are_as_few_as_will_do() {
    for (each, n, wanted) in [
        (1, 0, 1),
        (1, 257, 2),
        (4, 1024, 1),
        (4, 1025, 2),
        (4, 65535 * 1024 + 1, 65536),
        (0, 4096, 1),
        (0, 4097, 2),
        (0, 2112 * 4096 + 1, 2112),
        (0, 1 << 32, 2112),
    ] {
        assert_eq!(groups(each, n), wanted, "{each} each, n = {n}");
    }
}

/// A large number, one that is lost beside it, and its opposite, in lanes 0, 1 and 128. The tree adds
/// lanes half a workgroup apart first, and ends at 1; a subgroup adds neighbours, and ends at 0. So
/// it shows whose addition it is: of the elements in one workgroup, and of the partials in `finish`.
#[test]
fn subgroups_add_what_the_tree_would_add_last() {
    let _turn = process::turn();
    let gpu = setup(OPTIONAL).unwrap();
    let large = (1u32 << 25) as f32;
    for &kernel in SUMS.iter() {
        let (name, each, _) = KERNELS[kernel];
        // Elements side by side that one lane takes, and one workgroup.
        let (lane, group) = if name == "many" { (4, 4096) } else { (1, 256 * each as usize) };
        let wanted = if TREES.contains(&kernel) { 1.0 } else { 0.0 };
        for (what, apart) in [("lanes", lane), ("workgroups", group)] {
            let mut data = vec![0.0; 129 * group];
            for (place, number) in [(0, large), (1, 1.0), (128, -large)] {
                data[place * apart] = number;
            }
            let (sum, _) = sum(&gpu, kernel, &upload(&gpu, &data).unwrap()).unwrap();
            assert_eq!(sum, wanted, "{:?}, {what}", KERNELS[kernel]);
        }
    }
}
