// Loaded before anything is painted, so that a chosen theme never flashes the other one.
{
  let theme = null;
  try {
    theme = localStorage.getItem("tidings.theme");
  } catch {
    // Without storage, the theme is the system's.
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}
