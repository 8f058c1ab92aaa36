"""What the commands say, and what they refuse."""

MESSAGES: dict[str, str] = {
    "A 20-layer sigmoid network": "20 層的 sigmoid 網路",
    "A small conv net, BatchNorm momentum 0.001": "小型卷積網路，BatchNorm momentum 0.001",
    "The same net, BatchNorm momentum 0.1": "同一個網路，BatchNorm momentum 0.1",
    "Open these pages in a browser:": "請用瀏覽器開啟以下頁面：",
    "test accuracy  {batch:.3f} with batch statistics, {running:.3f} with running ones": (
        "測試正確率  使用批次統計量時 {batch:.3f}，使用 running 統計量時 {running:.3f}"
    ),
    "`{command}` ended with exit code {code}.": "`{command}` 結束時的結束碼為 {code}。",
    "Cannot write to `{folder}`: {reason}.": "無法寫入 `{folder}`：{reason}。",
    "Cannot go on: {reason}.": "無法繼續：{reason}。",
    "Cannot write `{file}`: {reason}.": "無法寫入 `{file}`：{reason}。",
    "Cannot write `{file}`: it is a folder. Name a file in it.": (
        "無法寫入 `{file}`：它是資料夾。請指定其中的檔名。"
    ),
    "Cannot write `{file}`: make the folder `{folder}` first.": (
        "無法寫入 `{file}`：請先建立資料夾 `{folder}`。"
    ),
    "Standard output is the script's: give `--json` a file.": (
        "標準輸出屬於腳本：請為 `--json` 指定一個檔案。"
    ),
    "There is no language `{name}`; there are {languages}.": (
        "沒有 `{name}` 這種語言；可用的有 {languages}。"
    ),
    "no training was seen: the script's process ran no backward pass and no optimizer step.": (
        "沒有看到訓練：腳本的行程既沒有反向傳播，也沒有最佳化器更新。"
    ),
    "Nothing could be saved in `{folder}`. Choose another folder.": (
        "無法在 `{folder}` 儲存任何東西。請改用其他資料夾。"
    ),
    "This needs PyTorch, which is not installed here. Install it as your system needs it, for "
    "instance with `pip install torch`.": (
        "這需要 PyTorch，但這裡沒有安裝。請依你的系統安裝，例如執行 `pip install torch`。"
    ),
    "`traindx run` needs a script: `{example}`.": "`traindx run` 需要一個腳本：`{example}`。",
    "There is no script `{script}`. Give the path of a Python file.": (
        "沒有名為 `{script}` 的腳本。請指定 Python 檔的路徑。"
    ),
    "`{path}` has no `__main__.py`. Give the path of a Python file.": (
        "`{path}` 中沒有 `__main__.py`。請指定 Python 檔的路徑。"
    ),
    "Cannot open the script `{path}`: {reason}.": "無法開啟腳本 `{path}`：{reason}。",
    "There is no quantity `{name}`.": "沒有名為 `{name}` 的量測項目。",
    "There is no quantity `{name}`. Did you mean `{nearest}`?": (
        "沒有名為 `{name}` 的量測項目。你是指 `{nearest}` 嗎？"
    ),
    "There is no rule `{rule}`; the nearest is `{nearest}` ({name}).": (
        "沒有名為 `{rule}` 的規則；最接近的是 `{nearest}`（{name}）。"
    ),
}
