// Before the first paint: the theme that was chosen last, or else the system's.
try {
  const theme = localStorage.getItem("memlode-theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch { /* a page from a file may have no storage */ }
