//! Names that memlode's compiler wrote into a program: exact where an instruction is one of its sites.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use memlode_symbols::code::{FunctionCode, code_of, whole_name};
use memlode_symbols::instruction::Register;
use memlode_symbols::typing::{TypedAccess, TypedData, Untyped};
use memlode_symbols::{CodeSites, ProgramFile};
use memlode_trace::module::Module;
use memlode_trace::sites::{SiteId, SiteTable};

/// The register that frames are addressed by beside the stack pointer: `rbp`.
const FRAME: Register = Register(6);

/// The sites of a program that was built with memlode.
pub(crate) struct ProgramSites {
    names: SiteTable,
    by_function: HashMap<String, Vec<SiteId>>,
    /// Functions that were looked up, by their names.
    functions: HashMap<String, Rc<FunctionSites>>,
}

/// The code of a function, and its sites.
struct FunctionSites {
    code: Vec<FunctionCode>,
    sites: CodeSites,
}

impl ProgramSites {
    /// Reads the site tables of a program; `None` if it has none that can be read.
    pub fn of(program: &ProgramFile) -> Option<ProgramSites> {
        let module = Module::parse(program.site_tables()?).ok()?;
        let names = SiteTable::of_module(&module);
        let mut by_function: HashMap<String, Vec<SiteId>> = HashMap::new();
        for (id, site) in (0..).map(SiteId).zip(names.sites()) {
            let symbol = names.string(names.symbol(site.function));
            match by_function.get_mut(symbol) {
                Some(sites) => sites.push(id),
                None => _ = by_function.insert(symbol.to_owned(), vec![id]),
            }
        }
        Some(ProgramSites { names, by_function, functions: HashMap::new() })
    }

    /// The data of an access by the sites that its instruction can be, if all of these have the same.
    pub fn data(&mut self, program: &ProgramFile, access: &TypedAccess) -> Option<TypedData> {
        let function = whole_name(&program.function_at(access.address)?.name).to_owned();
        let function = self.function(program, function);
        let (code, line) = function.code.iter().find_map(|code| {
            let at = code.lines.binary_search_by_key(&access.address, |line| line.address).ok()?;
            Some((code, &code.lines[at]))
        })?;
        // A value that is kept in the frame may be loaded for an access of the same line, column and size.
        let sites = match may_be_kept_value(access) {
            true => function.sites.exactly(code.version, line).unwrap_or_default(),
            false => function.sites.candidates(code.version, line),
        };
        let mut all = sites.iter().map(|site| self.site_data(*site, access));
        let first = all.next()?;
        let is_named = first.kind.is_some() || first.member.is_some() || first.variable.is_some();
        (is_named && all.all(|other| other == first)).then_some(first)
    }

    fn function(&mut self, program: &ProgramFile, name: String) -> Rc<FunctionSites> {
        if let Some(known) = self.functions.get(&name) {
            return known.clone();
        }
        // Damaged debug information has no lines.
        let code = code_of(program, &BTreeSet::from([name.clone()])).unwrap_or_default();
        let sites = self.by_function.get(&name).cloned().unwrap_or_default();
        let sites = CodeSites::of(&self.names, sites, &code);
        let found = Rc::new(FunctionSites { code, sites });
        self.functions.insert(name, found.clone());
        found
    }

    /// The names of a site. It has the variable that a pointer is in, too: samples name variables that are the object.
    fn site_data(&self, site: SiteId, access: &TypedAccess) -> TypedData {
        let site = self.names.site(site);
        let text = |id| self.names.string(id).to_owned();
        let kind = site.ty.map(|ty| text(self.names.ty(ty).name));
        let is_object = access.data.as_ref().is_ok_and(|data| data.variable.is_some()) || kind.is_none();
        TypedData {
            kind,
            member: site.member.map(text),
            variable: site.variable.filter(|_| is_object).map(text),
        }
    }
}

fn may_be_kept_value(access: &TypedAccess) -> bool {
    let of_frame = |register| register == Register::STACK || register == FRAME;
    access.data == Err(Untyped::Frame)
        || access.operand.as_ref().and_then(|operand| operand.base()).is_some_and(of_frame)
}
