"""Run files: what cannot be read, and what cannot be stored."""

MESSAGES: dict[str, str] = {
    "There is no run file in `{folder}`. `traindx run SCRIPT` makes one; name one of another "
    "folder by its path.": (
        "`{folder}` 中沒有執行記錄檔。`traindx run SCRIPT` 會產生一個；"
        "若在其他資料夾，請指定其路徑。"
    ),
    "There is no run file `{path}`. {hint}": "沒有名為 `{path}` 的執行記錄檔。{hint}",
    "`{path}` is a folder, not a run file. {hint}": "`{path}` 是資料夾，不是執行記錄檔。{hint}",
    "`{path}` is a device or a pipe, not a run file.": "`{path}` 是裝置或管線，不是執行記錄檔。",
    "`{path}` is empty: its run ended before anything was stored.": (
        "`{path}` 是空的：在存入任何資料之前，那次執行就已結束。"
    ),
    "`{path}` is not a run file but {kind}.": "`{path}` 不是執行記錄檔，而是{kind}。",
    "a ZIP archive, as torch.save writes": " ZIP 壓縮檔（torch.save 所寫的格式）",
    "a pickle": " pickle 檔",
    "gzip data": " gzip 資料",
    "an HDF5 file": " HDF5 檔",
    "a text": "文字檔",
    "something else": "別的東西",
    "`{path}` is an SQLite database of another program, not a run file.": (
        "`{path}` 是其他程式的 SQLite 資料庫，不是執行記錄檔。"
    ),
    "`{path}` has run file schema {version}, and traindx {traindx} reads up to {newest}. Update "
    "it: `pip install --upgrade traindx`.": (
        "`{path}` 的格式版本為 {version}，而 traindx {traindx} 最多讀到 {newest}。"
        "請更新：`pip install --upgrade traindx`。"
    ),
    "`{path}` was switched to another journal mode than traindx writes. Switch it back: "
    "`sqlite3 {path} 'PRAGMA journal_mode = DELETE'`.": (
        "`{path}` 被切換成 traindx 不使用的 journal 模式。請切換回來："
        "`sqlite3 {path} 'PRAGMA journal_mode = DELETE'`。"
    ),
    "`{path}` is locked by another program; try again once that is done.": (
        "`{path}` 被其他程式鎖定；請等它結束後再試。"
    ),
    "`{path}` is damaged: {what}.": "`{path}` 已損壞：{what}。",
    "{message} If it is a copy, copy `{journal}` from beside the original too, where there is one: "
    "it undoes a commit that was cut off.": (
        "{message}如果這是複本，而原始檔旁邊有 `{journal}`，請一併複製：它會復原被中斷的寫入。"
    ),
    "`traindx run SCRIPT` makes one.": "`traindx run SCRIPT` 會產生一個。",
    "Here are some: {files}.": "可用的有：{files}。",
    "Cannot read `{path}`: {reason}.": "無法讀取 `{path}`：{reason}。",
    "Cannot store the run in `{place}`: {reason}.": "無法將這次執行存入 `{place}`：{reason}。",
    "it holds something already": "裡面已有內容",
    "Cannot store the run in `{path}` for now: {error}. Training goes on, and what was measured is "
    "kept in memory and stored once that is possible.": (
        "目前無法將這次執行存入 `{path}`：{error}。訓練繼續進行，"
        "量測結果會先留在記憶體中，待可以寫入時再儲存。"
    ),
    "The run file `{path}` is not complete: not all that was measured could be stored. What is "
    "told here is of the whole run.": (
        "執行記錄檔 `{path}` 不完整：並非所有量測結果都能存入。此處所述則以整次執行為準。"
    ),
    "{dropped} items were dropped, as the run file could not be written for long.": (
        "由於執行記錄檔長時間無法寫入，已捨棄 {dropped} 筆資料。"
    ),
}
