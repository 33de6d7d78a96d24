//! Every shader is valid for a device that has only what its example asks for, is used whole, and agrees with the
//! example on the constants that both spell out. Here is also how the checks read Rust and WGSL.

use proc_macro2::{Delimiter, Group, LexError, TokenStream, TokenTree};
use wgpu_types::{DownlevelFlags, Features};

use crate::inventory::{Example, examples, fault, owns, shaders};
use crate::{Book, Fault};

/// Everything that this module holds against the shaders.
pub fn faults(book: &Book) -> Vec<Fault> {
    let examples = examples(book);
    let mut faults = Vec::new();
    for (name, path, source) in shaders(book) {
        let users = users(&examples, name);
        let checked = match module(source, asked(book, name)) {
            Ok(checked) => checked,
            Err(why) => {
                let feature = match is_plain(&examples, name) {
                    true => "move what needs a feature into NN_name_FEATURE.wgsl",
                    false => "ask for the feature in the example that includes it",
                };
                let repair = format!("mend it, or {feature}");
                faults.push(fault(path, why, repair));
                continue;
            }
        };
        // A shader that nothing includes is an orphan, and inventory.rs says so.
        if users.is_empty() {
            continue;
        }
        if !is_plain(&examples, name) && plain(source).is_ok() {
            let what = "needs no optional feature, so it need not be a file of its own";
            faults.push(fault(path, what, "move its entry points into the plain shader"));
        }
        faults.extend(unused(path, &checked, &users));
        for user in &users {
            faults.extend(constants_agree(path, source, &checked.0, user));
        }
    }
    faults
}

/// Whether a device with these features would take the shader; if not, why, in one line.
pub fn validate(source: &str, features: Features) -> Result<(), String> {
    module(source, features).map(|_| ())
}

/// The same for a device that has no optional features.
pub fn plain(source: &str) -> Result<(), String> {
    validate(source, Features::empty())
}

/// The features that a shader of the book may count on: none for `NN_name`, and for `NN_name_FEATURE` those that the
/// examples which include it name.
pub fn asked(book: &Book, name: &str) -> Features {
    let examples = examples(book);
    if is_plain(&examples, name) {
        return Features::empty();
    }
    let mut features = Features::empty();
    for user in users(&examples, name) {
        let tokens = tokens(user.text).unwrap_or_default();
        for words in tokens.windows(4) {
            if words[0].text == "Features" && words[1].text == ":" && words[2].text == ":" {
                features |= Features::from_name(&words[3].text).unwrap_or(Features::empty());
            }
        }
    }
    features
}

/// `NN_name_FEATURE` is what is left when an example's stem is taken off; all else has to do without features.
fn is_plain(examples: &[Example], name: &str) -> bool {
    !examples.iter().any(|example| example.stem != name && owns(example.stem, name))
}

type Checked = (naga::Module, naga::valid::ModuleInfo);

/// Parses and validates as wgpu does. The downlevel flags are those of a full WebGPU device: they concern textures.
fn module(source: &str, features: Features) -> Result<Checked, String> {
    let downlevel = DownlevelFlags::compliant();
    let mut options = naga::front::wgsl::Options::new();
    options.capabilities = wgpu_naga_bridge::features_to_naga_capabilities(features, downlevel);
    let line = |place: Option<naga::SourceLocation>| {
        place.map_or(String::new(), |at| format!("line {}: ", at.line_number))
    };
    let module = naga::front::wgsl::Frontend::new_with_options(options)
        .parse(source)
        .map_err(|error| format!("{}{}", line(error.location(source)), one_line(&error)))?;
    let info = wgpu_naga_bridge::create_validator(
        features,
        downlevel,
        naga::valid::ValidationFlags::all(),
    )
    .validate(&module)
    .map_err(|error| format!("{}{}", line(error.location(source)), one_line(error.as_inner())))?;
    Ok((module, info))
}

/// An error and its causes.
fn one_line(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let texts: Vec<String> = causes.map(|error| error.to_string()).collect();
    texts.join(": ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The examples that include a shader.
pub fn users<'a>(examples: &[Example<'a>], name: &str) -> Vec<Example<'a>> {
    let literal = format!("../shaders/{name}.wgsl");
    examples.iter().filter(|example| strings(example.text).contains(&literal)).copied().collect()
}

fn unused(path: &str, (module, info): &Checked, users: &[Example]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for entry in &module.entry_points {
        let name = &entry.name;
        if name == "main" {
            let repair = "name it for what it does, here and in the example";
            faults.push(fault(path, "an entry point is called `main`", repair));
        }
        if !users.iter().any(|user| strings(user.text).contains(name)) {
            let what = format!("no example that includes it names the entry point `{name}`");
            faults.push(fault(path, what, "take the entry point out, or use it"));
        }
    }
    for name in module.overrides.iter().filter_map(|(_, one)| one.name.as_ref()) {
        if !users.iter().any(|user| strings(user.text).contains(name)) {
            let what = format!("no example that includes it names the override `{name}`");
            faults.push(fault(path, what, "give it a value in the pipeline's `constants`"));
        }
    }
    for (handle, variable) in module.global_variables.iter() {
        let mut entries = 0..module.entry_points.len();
        if entries.all(|entry| info.get_entry_point(entry)[handle].is_empty()) {
            let name = variable.name.as_deref().unwrap_or("a variable");
            let repair = "take its declaration out of the shader, and of the example's layout";
            faults.push(fault(path, format!("no entry point uses `{name}`"), repair));
        }
    }
    faults
}

/// A number that both languages name is the same in both, and a workgroup's size is such a number.
fn constants_agree(path: &str, source: &str, module: &naga::Module, user: &Example) -> Vec<Fault> {
    let rust = tokens(user.text).unwrap_or_default();
    let sizes = workgroup_sizes(source);
    let mut faults = Vec::new();
    for (_, constant) in module.constants.iter() {
        let (Some(name), Some(wgsl)) = (&constant.name, number_of(module, constant)) else {
            continue;
        };
        match constant_of(&rust, name).map(|value| (number(&value), value)) {
            Some((Some(number), _)) if number == wgsl => {}
            Some((Some(number), _)) => {
                let what = format!("`{name}` is {number} here, but {wgsl} in {path}");
                faults.push(fault(user.path, what, "make the two equal"));
            }
            Some((None, value)) => {
                let what =
                    format!("`{name}` is `{value}` here, and no number to compare with {path}");
                faults.push(fault(user.path, what, "write it as one plain number"));
            }
            None if sizes.contains(name) => {
                let what = format!("`{name}` is a workgroup's size in {path}, and missing here");
                faults.push(fault(user.path, what, format!("add `const {name}: u32 = {wgsl};`")));
            }
            None => {}
        }
    }
    let overrides = module.overrides.iter().filter_map(|(_, one)| one.name.as_ref());
    let constants = module.constants.iter().filter_map(|(_, one)| one.name.as_ref());
    let typed: Vec<&String> = overrides.chain(constants).collect();
    for name in sizes.iter().filter(|name| !typed.contains(name)) {
        let (what, repair) = if name.starts_with(|sign: char| sign.is_ascii_digit()) {
            (format!("the workgroup's size {name} has no name"), "WIDTH".to_string())
        } else {
            let why = "has no type, so nothing can look it up";
            (format!("the workgroup's size `{name}` {why}"), name.clone())
        };
        faults.push(fault(path, what, format!("write `const {repair}: u32 = …;`")));
    }
    faults
}

/// The words in `@workgroup_size(…)`, names as they should be. The text is asked, because naga has put in their values.
fn workgroup_sizes(source: &str) -> Vec<String> {
    let lines = source.lines().map(|line| line.split("//").next().unwrap_or_default());
    let code = lines.collect::<Vec<_>>().join("\n");
    let sizes = code.split("@workgroup_size(").skip(1).filter_map(|rest| rest.split(')').next());
    let words =
        sizes.flat_map(|list| list.split(|sign: char| !sign.is_alphanumeric() && sign != '_'));
    // A workgroup of one invocation has nothing to agree on.
    let mut names: Vec<String> =
        words.filter(|word| !word.is_empty() && *word != "1").map(str::to_string).collect();
    names.sort();
    names.dedup();
    names
}

fn number_of(module: &naga::Module, constant: &naga::Constant) -> Option<String> {
    let naga::Expression::Literal(literal) = module.global_expressions[constant.init] else {
        return None;
    };
    match literal {
        naga::Literal::U32(value) => Some(value.to_string()),
        naga::Literal::I32(value) => Some(value.to_string()),
        naga::Literal::F32(value) => Some(value.to_string()),
        _ => None,
    }
}

/// A Rust number, spelled as `number_of` spells it: `1_024u32` is 1024, `0.5` is 0.5.
fn number(literal: &str) -> Option<String> {
    match syn::parse_str(literal).ok()? {
        syn::Lit::Int(value) => Some(value.base10_digits().into()),
        syn::Lit::Float(value) => Some(value.base10_parse::<f32>().ok()?.to_string()),
        _ => None,
    }
}

/// A word of Rust and the line that it stands on.
pub struct Token {
    pub text: String,
    pub line: usize,
}

/// The code of a Rust source, word by word: no comments, no white space, no trailing commas.
pub fn tokens(source: &str) -> Result<Vec<Token>, String> {
    let stream: TokenStream = source
        .parse()
        .map_err(|error: LexError| format!("line {}: {error}", error.span().start().line))?;
    let mut tokens = Vec::new();
    flatten(stream, &mut tokens);
    Ok(tokens)
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    for tree in stream {
        let line = tree.span().start().line;
        let TokenTree::Group(group) = tree else {
            // White space within a string is its indentation, where the string goes on in the next line.
            let text = tree.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
            tokens.push(Token { text, line });
            continue;
        };
        if is_doc(&group) {
            // A doc comment arrives as `#[doc = "…"]` or `#![doc = "…"]`, and its first signs are already here.
            tokens.pop_if(|token| token.text == "!");
            tokens.pop();
            continue;
        }
        let (open, close) = match group.delimiter() {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::Brace => ("{", "}"),
            Delimiter::None => ("", ""),
        };
        tokens.push(Token { text: open.into(), line });
        flatten(group.stream(), tokens);
        tokens.pop_if(|token| token.text == ",");
        tokens.push(Token { text: close.into(), line: group.span_close().start().line });
    }
}

fn is_doc(group: &Group) -> bool {
    let first = group.stream().into_iter().next();
    group.delimiter() == Delimiter::Bracket
        && matches!(first, Some(TokenTree::Ident(word)) if word == "doc")
}

/// The string literals of a Rust source; none where it cannot be read, which is ladder.rs's to say.
pub fn strings(source: &str) -> Vec<String> {
    let tokens = tokens(source).unwrap_or_default();
    let literal = |token: &Token| syn::parse_str::<syn::LitStr>(&token.text).ok();
    tokens.iter().filter_map(literal).map(|literal| literal.value()).collect()
}

/// What stands between `=` and `;` in `const NAME: … = …;`.
fn constant_of(tokens: &[Token], name: &str) -> Option<String> {
    let texts: Vec<&str> = tokens.iter().map(|token| token.text.as_str()).collect();
    let at = texts.windows(2).position(|words| words == ["const", name])?;
    let value = texts[at..].iter().skip_while(|text| **text != "=").skip(1);
    Some(value.take_while(|text| **text != ";").copied().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_caught;

    const RUST: &str = r#"
        const WIDTH: u32 = 64;
        const SHARE: f32 = 0.1;
        fn make() { (include_wgsl!("../shaders/02_tax.wgsl"), "fold", wgpu::Features::TIMESTAMP_QUERY) }
    "#;
    const WGSL: &str = "
        const WIDTH: u32 = 64u; // not @workgroup_size(OTHER)
        const SHARE = 0.1f;
        @group(0) @binding(0) var<storage, read_write> sums: array<f32>;
        @compute @workgroup_size(WIDTH)
        fn fold(@builtin(global_invocation_id) id: vec3<u32>) { sums[id.x] *= SHARE; }
    ";
    const SUBGROUP: &str = "
        @group(0) @binding(0) var<storage, read_write> sums: array<f32>;
        @compute @workgroup_size(1)
        fn fold(@builtin(global_invocation_id) id: vec3<u32>) { sums[id.x] = subgroupAdd(1.0); }
    ";

    /// The faults of an example and its shader.
    fn pair(rust: &str, wgsl: &str) -> Vec<Fault> {
        faults(&Book::of(&[("examples/02_tax.rs", rust), ("shaders/02_tax.wgsl", wgsl)]))
    }

    #[track_caller]
    fn caught_in_rust(from: &str, to: &str, what: &str, repair: &str) {
        assert_caught(&pair(&RUST.replace(from, to), WGSL), what, repair);
    }

    #[track_caller]
    fn caught_in_wgsl(from: &str, to: &str, what: &str, repair: &str) {
        assert_caught(&pair(RUST, &WGSL.replace(from, to)), what, repair);
    }

    /// The faults of the right pair with `02_tax_subgroup.wgsl` beside it.
    fn with_feature_file(feature: &str, wgsl: &str) -> Vec<Fault> {
        let include = "wgpu::include_wgsl!(\"../shaders/02_tax_subgroup.wgsl\")";
        faults(&Book::of(&[
            ("examples/02_tax.rs", &format!("{RUST} fn ask() {{ ({include}, {feature}) }}")),
            ("shaders/02_tax.wgsl", WGSL),
            ("shaders/02_tax_subgroup.wgsl", wgsl),
        ]))
    }

    #[test]
    fn a_right_book_passes() {
        assert_eq!(pair(RUST, WGSL), []);
        assert_eq!(with_feature_file("wgpu::Features::SUBGROUP", SUBGROUP), []);
    }

    #[test]
    fn an_invalid_shader_is_caught_with_its_line() {
        caught_in_wgsl("f32>", "floaty>", "line 4: no definition in scope", "mend it");
        caught_in_wgsl("*= SHARE", "+= 1u", "line 6: ", "mend it");
    }

    #[test]
    fn a_feature_that_nobody_asked_for_is_caught() {
        assert_caught(&pair(RUST, SUBGROUP), "Capabilities(SUBGROUP)", "NN_name_FEATURE.wgsl");
        let wrong = with_feature_file("wgpu::Features::SHADER_F64", SUBGROUP);
        assert_caught(&wrong, "Capabilities(SUBGROUP)", "ask for the feature");
        let needless = SUBGROUP.replace("subgroupAdd", "sqrt");
        let idle = with_feature_file("wgpu::Features::SUBGROUP", &needless);
        assert_caught(&idle, "needs no optional feature", "into the plain shader");
    }

    #[test]
    fn unused_and_unnamed_things_are_caught() {
        caught_in_rust("fold", "sum", "names the entry point `fold`", "take the entry point out");
        let main = pair(&RUST.replace("fold", "main"), &WGSL.replace("fold", "main"));
        assert_caught(&main, "called `main`", "name it for what it does");
        let idle = "@group(0) @binding(1) var<storage> idle: array<f32>; @compute";
        caught_in_wgsl("@compute", idle, "no entry point uses `idle`", "take its declaration out");
        let size = "override WIDTH: u32; //";
        let what = "names the override `WIDTH`";
        caught_in_wgsl("const WIDTH: u32 = 64u;", size, what, "give it a value");
        let told = RUST.replace("\"fold\"", "\"fold\", \"WIDTH\"");
        assert_eq!(pair(&told, &WGSL.replace("const WIDTH: u32 = 64u;", size)), []);
    }

    #[test]
    fn constants_that_differ_are_caught() {
        caught_in_rust("64", "128", "`WIDTH` is 128 here, but 64 in shaders/02", "make the two");
        caught_in_rust("0.1", "0.2", "`SHARE` is 0.2 here, but 0.1 in shaders/02", "make the two");
        caught_in_rust("64", "8 * 8", "`WIDTH` is `8 * 8` here", "one plain number");
        caught_in_rust("WIDTH", "W", "and missing here", "add `const WIDTH: u32 = 64;`");
        caught_in_wgsl(": u32 = 64u", " = 64", "`WIDTH` has no type", "write `const WIDTH: u32 =");
        let what = "the workgroup's size 32 has no name";
        caught_in_wgsl("size(WIDTH)", "size(32)", what, "write `const WIDTH: u32 =");
    }

    #[test]
    fn the_book() {
        crate::report(faults(&crate::the_book()));
    }
}
