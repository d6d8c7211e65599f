"""A browser that opens pages of `memlode html`, and the programs, traces and pages that it opens."""

import base64
import json
import pathlib
import re
import subprocess
import sys
import zlib

import axe_playwright_python
from playwright import sync_api

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = ROOT / "target" / "tests" / "html"
MEMLODE = ROOT / "target" / "memlode" / "bin" / "memlode"
CHROMIUM = "/usr/bin/chromium-headless-shell"
# A browser that asks its maker for nothing.
FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
AXE = (pathlib.Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
WIDTHS = {"wide": 1280, "phone": 400}
# Links of a view that are followed, each to another place.
FOLLOWED = 8


def run(*command, check=True):
    done = subprocess.run([str(word) for word in command], cwd=WORK, capture_output=True, text=True, timeout=600)
    if check and done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.returncode}\n{done.stderr}")
    return done


def build(name, source, *flags):
    """Compiles a program, as memlode does."""
    if isinstance(source, str):
        path = WORK / f"{name}.c"
        path.write_text(source)
        source = path
    run(MEMLODE, "cc", "-O2", "-g", "-w", source, "-o", WORK / name, *flags)
    return WORK / name


def record(name, program, *arguments):
    """Records it. Returns what it wrote to standard error."""
    trace = WORK / f"{name}-trace"
    return run(MEMLODE, "record", "-o", trace, "--force", "--", program, *arguments).stderr


def page(name, *options):
    """Makes the page of a trace."""
    made = WORK / f"{name}.html"
    run(MEMLODE, "html", f"{name}-trace", "--machine", "generic", "-o", made, *options)
    return made


def held(path):
    """The data that a page holds."""
    letters = re.search(r'id="data">([^<]*)<', path.read_text()).group(1)
    return json.loads(zlib.decompress(base64.b64decode(letters)))


class Reader:
    """A browser with one page, which notes what it may not do."""

    def __init__(self, browser, theme, width):
        self.faults = []
        self.name = f"{theme}-{width}"
        context = browser.new_context(
            viewport={"width": WIDTHS[width], "height": 900}, color_scheme=theme, reduced_motion="reduce")
        self.page = context.new_page()
        self.page.set_default_timeout(15_000)
        self.page.on("console", lambda message: self.faults.append(f"console: {message.text}"))
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("request", self.request)

    def request(self, request):
        if not request.url.startswith(self.address if hasattr(self, "address") else "file:"):
            self.faults.append(f"request: {request.url}")

    def open(self, path, fragment=""):
        self.address = path.as_uri()
        self.page.goto("about:blank")
        self.page.goto(self.address + fragment)
        self.page.wait_for_selector("body[data-ready]")

    def hash(self):
        return self.page.evaluate("location.hash")

    def click(self, place):
        """Follows a link; a page draws what is chosen a moment after its address says so."""
        there = place.evaluate("link => (link.click(), link.hash)")
        self.page.wait_for_function("hash => document.body.dataset.shown === hash", arg=there)

    def comes(self, place):
        """Whether something appears."""
        try:
            place.first.wait_for()
        except sync_api.TimeoutError:
            return False
        return True

    def check(self, where):
        """What holds of every view."""
        sizes = self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        if sizes[0] > sizes[1]:
            self.faults.append(f"{where}: {sizes[0]} pixels wide, on a screen of {sizes[1]}")
        if not self.page.locator("#main h1").count():
            self.faults.append(f"{where}: nothing is shown")
        if re.search(r"undefined|NaN|\[object", self.page.locator("#main").inner_text()):
            self.faults.append(f"{where}: a value is missing")

    def accessible(self, where):
        """What axe-core calls serious."""
        self.page.evaluate(AXE + ";0")
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        for fault in found:
            if fault["impact"] in ("serious", "critical"):
                self.faults.append(f"{where}: {fault['id']}: {fault['nodes'][0]['html'][:200]}")

    def views(self, name, is_thorough):
        """Opens each view by a click; of some pages, follows its links and goes back."""
        tabs = self.page.locator("#views a")
        for at in range(tabs.count()):
            self.click(tabs.nth(at))
            here = self.hash()
            where = f"{name} {self.name} {here}"
            self.check(where)
            self.page.screenshot(path=WORK / f"{name}-{self.name}-{here[1:]}.png", full_page=True)
            if is_thorough:
                self.accessible(where)
                self.follow(where, here)

    def follow(self, where, here):
        links = self.page.evaluate("[...new Set([...document.querySelectorAll('#main a')].map(a => a.hash))]")
        for link in links[:FOLLOWED]:
            self.click(self.page.locator(f'#main a[href={json.dumps(link)}]').first)
            self.check(f"{where} → {link}")
            if link != here:
                self.page.go_back()
                self.page.wait_for_function("hash => document.body.dataset.shown === hash", arg=here)
