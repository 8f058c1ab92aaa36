"""L005, L008, L010, L018, L019: data, labels and what counts in the loss."""

MESSAGES: dict[str, str] = {
    # L018 data-order, in training
    "Passes over the training data that were begun, of those that give most batches.": (
        "已開始走訪訓練資料的次數，取給出最多批次的資料。"
    ),
    "Passes whose first batch was that of the pass before.": (
        "第一個批次與前一次走訪相同的走訪次數。"
    ),
    "The part of the data that the longest pass came to; 0 if they have no known end.": (
        "最長的一次走訪讀到資料的哪個比例；若不知何處結束則為 0。"
    ),
    "Batches that all passes have given.": "所有走訪給出的批次數。",
    "The data lie sorted by class and are read in that order, or only their beginning is read.": (
        "資料依類別排序並以該順序讀取，或只讀了開頭。"
    ),
    "all {passes:.0f} passes over the data began with the same batch and were ended after "
    "{each:.3g} batches on average: what comes later in the data is never seen": (
        "全部 {passes:.0f} 次走訪資料都以同一個批次開始，平均 {each:.3g} 個批次後就結束："
        "資料中較後面的部分從未被看到"
    ),
    "A new pass is begun before the last one is over, and the data are not shuffled.": (
        "上一次走訪尚未結束就重新開始，而且資料沒有打亂。"
    ),
    "for x, y in loader: ...  # not next(iter(loader)), which begins anew": (
        "for x, y in loader: ...  # 不要用 next(iter(loader))，那會重新開始"
    ),
    "data of a single batch": "只有一個批次的資料",
    "passes in another order each": "每次順序不同的走訪",
    # L019 loss-mask
    "The part of a sequence's padding, its first and last position aside, with a gradient.": (
        "序列的填補位置中有梯度的比例，不計第一個與最後一個位置。"
    ),
    "Classes whose samples have no gradient, though all others have.": (
        "樣本沒有梯度、而其他類別的樣本都有梯度的類別數。"
    ),
    "Padding counts in the loss as if it were data, or the samples of a class do not count.": (
        "填補位置如同資料般計入損失，或某個類別的樣本沒有計入。"
    ),
    "{share:.0%} of the positions of the batch are padding, and {counted:.0%} of those inside it "
    "have a gradient: they count in the loss of {model}": (
        "批次中有 {share:.0%} 的位置是填補，其中內部的位置有 {counted:.0%} 具有梯度："
        "它們計入了 {model} 的損失"
    ),
    "The loss is not told which positions are padding.": "損失不知道哪些位置是填補。",
    "F.cross_entropy(scores.transpose(1, 2), words, ignore_index=PAD)": (
        "F.cross_entropy(scores.transpose(1, 2), words, ignore_index=PAD)"
    ),
    "the word that ends a text": "結束文句的詞",
    "a word that stands elsewhere, too": "在別處也出現的詞",
    "none of the {samples} samples of class {label} has a gradient, and every sample of the other "
    "classes has: class {label} is not learned": (
        "類別 {label} 的 {samples} 個樣本都沒有梯度，而其他類別的每個樣本都有："
        "類別 {label} 不會被學到"
    ),
    "The loss leaves class {label} out.": "損失略過了類別 {label}。",
    "loss = F.cross_entropy(scores, target)  # no ignore_index, weight 0 or mask of it": (
        "loss = F.cross_entropy(scores, target)  # 不要用對應它的 ignore_index、權重 0 或遮罩"
    ),
    "labels that are no class": "不屬於任何類別的標籤",
    # L005 label-pair-mismatch
    "the data and their labels were not found, row by row": "沒有找到逐列的資料與標籤",
    "the labels are all alike, or of too many classes": "標籤全都相同，或類別太多",
    "How far labels follow from their own inputs by two cheap learners, beside labels in random "
    "order: the stronger of both.": (
        "以兩種簡單的學習方法，標籤在多大程度上可由自己的輸入得知，與隨機順序的標籤相比；"
        "取兩者中較強的。"
    ),
    "The same of the labels of a row up to three before or after: the most.": (
        "同上，但用前後三列以內的標籤；取最大者。"
    ),
    "The labels belong to the rows before or after, or to no row that can be told.": (
        "標籤屬於前一列或後一列，或看不出屬於哪一列。"
    ),
    "the label of each row follows from the inputs {distance} before it ({shifted:.0f} standard "
    "deviations of chance), and not from its own ({own:.1f}): the labels are late": (
        "每一列的標籤可由往前第 {distance} 列的輸入得知（隨機的 {shifted:.0f} 個標準差），"
        "卻無法由自己的輸入得知（{own:.1f}）：標籤晚了"
    ),
    "the label of each row follows from the inputs {distance} after it ({shifted:.0f} standard "
    "deviations of chance), and not from its own ({own:.1f}): the labels are early": (
        "每一列的標籤可由往後第 {distance} 列的輸入得知（隨機的 {shifted:.0f} 個標準差），"
        "卻無法由自己的輸入得知（{own:.1f}）：標籤早了"
    ),
    "A row, such as a header, was read or dropped of the inputs or of the labels alone.": (
        "輸入或標籤其中一方多讀或少讀了一列，例如標題列。"
    ),
    "Join inputs and labels by a key; print the first rows of both.": (
        "請以鍵值合併輸入與標籤；並印出兩者的前幾列。"
    ),
    "rows that follow from the one before": "可由前一列得知的列",
    "labels in random order": "隨機順序的標籤",
    "of {rows} rows, the labels follow from the inputs no more than labels in random order do "
    "({own:.1f} standard deviations), neither of the nearest rows nor along a line": (
        "在 {rows} 列中，標籤由輸入得知的程度不比隨機順序的標籤高（{own:.1f} 個標準差），"
        "無論依最鄰近的列或依直線"
    ),
    "Inputs or labels were shuffled, sorted or filtered without the other.": (
        "輸入或標籤其中一方被單獨打亂、排序或篩選。"
    ),
    "order = torch.randperm(len(x)); x, y = x[order], y[order]": (
        "order = torch.randperm(len(x)); x, y = x[order], y[order]"
    ),
    "features that have nothing to do with each other": "彼此毫無關係的特徵",
    "labels of a row near by": "鄰近列的標籤",
    # L010 augmentation-wrong
    "the data are not read by place": "資料不是依位置讀取的",
    "the data hold no inputs as tensors of floats, or their targets": (
        "資料沒有浮點張量形式的輸入，或其目標"
    ),
    "the data are the same each time they are read": "每次讀取的資料都相同",
    "too few samples could be read again and again in time": "時間內能反覆讀取的樣本太少",
    "Standard deviation of a sample's elements from one time it is read to the next.": (
        "樣本的元素在每次讀取之間的標準差。"
    ),
    "The same from sample to sample, of what is the same each time.": (
        "同上，但為各樣本之間、每次讀取都相同的部分。"
    ),
    "the training loader has no two workers": "訓練的載入器沒有兩個工作行程",
    "the workers are not forked, or read a stream": "工作行程不是以 fork 產生，或讀取的是資料流",
    "the workers give no tensors": "工作行程沒有給出張量",
    "1 if two workers of the loader draw the same random numbers, 0 if not.": (
        "若載入器的兩個工作行程抽出相同的亂數則為 1，否則為 0。"
    ),
    "1 if two passes over the loader begin with the same random numbers, 0 if not.": (
        "若對載入器的兩次走訪以相同的亂數開始則為 1，否則為 0。"
    ),
    "Random changes of the data are in other units, of a picture alone, or where none belong.": (
        "資料的隨機變化單位不同、只作用於影像，或用在不該用的地方。"
    ),
    "what is random of the training's samples varies by {random:.3g}, and what is the same each "
    "time they are read by {lasting:.3g}: there is {times:.0f} times as much noise as data": (
        "訓練樣本中隨機的部分變動 {random:.3g}，每次讀取都相同的部分變動 {lasting:.3g}："
        "雜訊是資料的 {times:.0f} 倍"
    ),
    "The augmentation is in another unit than the data, which were scaled before it.": (
        "增強所用的單位與資料不同，資料在增強之前就已縮放。"
    ),
    "transforms = [augment, standardize]  # in this order, or in the scaled unit": (
        "transforms = [augment, standardize]  # 依此順序，或使用縮放後的單位"
    ),
    "samples without a lasting part": "沒有固定部分的樣本",
    "clean inputs as the target": "以乾淨的輸入為目標",
    "two workers of the training's loader make the very same of the same samples, though each "
    "makes something else the next time: they draw the same random numbers": (
        "訓練載入器的兩個工作行程由相同的樣本產生完全相同的結果，"
        "雖然各自下一次會產生不同的結果：它們抽出了相同的亂數"
    ),
    "a second pass over the training's loader makes the very same of the same samples as the "
    "first, though they are random: each pass draws the same random numbers": (
        "對訓練載入器的第二次走訪由相同的樣本產生與第一次完全相同的結果，"
        "雖然結果是隨機的：每次走訪都抽出相同的亂數"
    ),
    "The generator is seeded with the same number in each worker or pass, or was copied into each "
    "with the data set.": (
        "產生器在每個工作行程或每次走訪中都以相同的數設定種子，或隨資料集被複製到每個工作行程。"
    ),
    "def worker_init_fn(worker):\n"
    "    numpy.random.seed(torch.initial_seed() % 2**32)  # and generators of your own": (
        "def worker_init_fn(worker):\n"
        "    numpy.random.seed(torch.initial_seed() % 2**32)  # 以及您自己的產生器"
    ),
    "samples that are the same each time": "每次都相同的樣本",
    # L008 input-defect, nearly empty
    "The batch holds NaN or infinite numbers, the same sample again and again, or next to "
    "nothing.": "批次中有 NaN 或無限大的數、一再重複的樣本，或幾乎什麼也沒有。",
    "{blank} of the {samples} samples of the batch are nothing but zeros, and in all of them only "
    "{filled:.2g} of the elements are anything else, all whole numbers": (
        "批次的 {samples} 個樣本中有 {blank} 個全是零，所有樣本中也只有 {filled:.2g} "
        "的元素是其他的數，而且都是整數"
    ),
    "The data were divided, or cast, as whole numbers, and what lies between was lost.": (
        "資料以整數相除或轉型，介於其間的部分就此遺失。"
    ),
    "x = x.astype(numpy.float32) / 255  # not //, and the cast comes first": (
        "x = x.astype(numpy.float32) / 255  # 不要用 //，並且先轉型"
    ),
}
